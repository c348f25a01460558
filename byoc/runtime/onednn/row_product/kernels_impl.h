// The kernel of onednn/row_product/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it.  Everything is in an unnamed namespace or a template
// of one, so that the linker never takes one set's code for another's.
#include "onednn/row_product/kernels.h"

namespace mxplan {
namespace {

constexpr int64_t kLanes = MXPLAN_LANES;
constexpr int64_t kAhead = 512;  // floats from what is read to what is asked for
using Vec = float __attribute__((vector_size(4 * MXPLAN_LANES)));
using Unaligned = float __attribute__((vector_size(4 * MXPLAN_LANES), aligned(4), may_alias));

inline __attribute__((always_inline)) Vec Load(const float* from) {
  return *reinterpret_cast<const Unaligned*>(from);
}

template <int kRows>
inline __attribute__((always_inline)) void Rows(const RowProduct& product, const float* src,
                                                int64_t row, float* dst) {
  const float* filters = product.filters + row * product.depth;
  Vec even[kRows] = {}, odd[kRows] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= product.depth; i += 2 * kLanes) {
    Vec first = Load(src + i), second = Load(src + i + kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const float* filter = filters + r * product.depth + i;
      __builtin_prefetch(filter + kAhead, 0, 1);
      if (kLanes == 16) __builtin_prefetch(filter + kAhead + kLanes, 0, 1);
      even[r] += Load(filter) * first;
      odd[r] += Load(filter + kLanes) * second;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    Vec lanes = even[r] + odd[r];
    float sum = product.bias ? product.bias[row + r] : 0.0F;
    for (int64_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
    for (int64_t at = i; at < product.depth; ++at) {
      sum += filters[r * product.depth + at] * src[at];
    }
    dst[row + r] = product.relu && sum < 0 ? 0.0F : sum;
  }
}

inline void Product(const RowProduct& product, const float* src, int64_t begin, int64_t end,
                    float* dst) {
  int64_t row = begin;
  for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) Rows<kRowsAtOnce>(product, src, row, dst);
  for (; row < end; ++row) Rows<1>(product, src, row, dst);
}

}  // namespace
}  // namespace mxplan
