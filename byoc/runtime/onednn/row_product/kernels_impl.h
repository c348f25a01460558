// The kernel of onednn/row_product/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it.  Everything is in an unnamed namespace or a template
// of one, so that the linker never takes one set's code for another's.
#include "onednn/post_ops/apply_impl.h"
#include "onednn/row_product/kernels.h"

namespace mxplan {
namespace {

constexpr int64_t kParts = 4;  // sums of a row that do not wait for each other

using Four = float __attribute__((vector_size(16)));
using UnalignedFour = float __attribute__((vector_size(16), aligned(4), may_alias));

MXPLAN_INLINE Four LoadFour(const float* from) {
  return *reinterpret_cast<const UnalignedFour*>(from);
}

// A vector as the sum of its quarters, or whatever four lanes at a time are.
MXPLAN_INLINE Four Folded(Vec lanes) {
  Four parts[kLanes / 4];
  __builtin_memcpy(parts, &lanes, sizeof(lanes));
  for (int64_t count = kLanes / 8; count > 0; count /= 2) {
    for (int64_t i = 0; i < count; ++i) parts[i] += parts[i + count];
  }
  return parts[0];
}

// The sums of the lanes of four vectors.
MXPLAN_INLINE Four SumsOf(const Four* rows) {
  Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5) +
           __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  Four b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5) +
           __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

template <int kRows>
MXPLAN_INLINE void Rows(const RowProduct& product, const float* src, int64_t row, float* results) {
  const float* filters = product.filters + row * product.depth;
  // One row after another, as they stand in memory: that is what processors fetch ahead by
  // themselves. Several rows at once, or fetching by instructions, took up to a third longer.
  Four sums[4] = {};
  int64_t i = 0;
  for (int r = 0; r < kRows; ++r) {
    const float* filter = filters + r * product.depth;
    Vec parts[kParts] = {};
    for (i = 0; i + kParts * kLanes <= product.depth; i += kParts * kLanes) {
#pragma GCC unroll 4
      for (int64_t p = 0; p < kParts; ++p) {
        parts[p] += Load(filter + i + p * kLanes) * Load(src + i + p * kLanes);
      }
    }
    sums[r] = Folded((parts[0] + parts[1]) + (parts[2] + parts[3]));
    for (; i + 4 <= product.depth; i += 4) sums[r] += LoadFour(filter + i) * LoadFour(src + i);
  }
  Four sum = SumsOf(sums);
  for (; i < product.depth; ++i) {
    for (int r = 0; r < kRows; ++r) sum[r] += filters[r * product.depth + i] * src[i];
  }
  for (int r = 0; r < kRows; ++r) {
    results[r] = product.bias ? sum[r] + product.bias[row + r] : sum[r];
  }
}

// The post-ops of `count` results from `row` on, which become those of dst.
inline void Finish(const RowProduct& product, const float* results, int64_t row, int64_t count,
                   float* dst) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t some = count - i < kLanes ? count - i : kLanes;
    Vec x = Load(results + i);
    for (int64_t op = 0; op < product.post_op_count; ++op) {
      const PostOp& post_op = product.post_ops[op];
      const float* other = post_op.code == PostOp::Code::kSum ? dst : post_op.data;
      x = Apply(post_op, x, other ? LoadSome(other + row + i, some) : Vec{});
    }
    StoreSome(dst + row + i, x, some);
  }
}

inline void Product(const RowProduct& product, const float* src, int64_t begin, int64_t end,
                    float* dst) {
  for (int64_t first = begin; first < end; first += kResultsAtOnce) {
    const int64_t count = end - first < kResultsAtOnce ? end - first : kResultsAtOnce;
    float results[kResultsAtOnce] = {};
    int64_t i = 0;
    for (; i + kRowsAtOnce <= count; i += kRowsAtOnce) {
      Rows<kRowsAtOnce>(product, src, first + i, results + i);
    }
    for (; i < count; ++i) Rows<1>(product, src, first + i, results + i);
    Finish(product, results, first, count, dst);
  }
}

}  // namespace
}  // namespace mxplan
