// The kernel of onednn/statistics/kernels.h; included once for each instruction set, by a file that
// names it.  Everything is in an unnamed namespace, so that the linker never takes one set's code
// for another's.
#include "onednn/statistics/kernels.h"

namespace mxplan::statistics {
namespace {

constexpr int64_t kChunk = 128;  // positions, which stay in the nearest cache

template <int kLanes>
void Add(const float* numbers, const Rows& rows, int64_t count, Moments* found) {
  using Vec = float __attribute__((vector_size(4 * kLanes)));
  using Unaligned = float __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
  Vec sum = {}, rest = {}, square = {};
  for (int64_t i = 0; i < count; ++i) {
    sum += *reinterpret_cast<const Unaligned*>(numbers + i * rows.step);
  }
  const Vec centre = sum / static_cast<float>(count);
  for (int64_t i = 0; i < count; ++i) {
    const Vec distance = *reinterpret_cast<const Unaligned*>(numbers + i * rows.step) - centre;
    rest += distance;
    square += distance * distance;
  }
  const auto more = static_cast<double>(count), before = static_cast<double>(found->count);
  for (int lane = 0; lane < kLanes; ++lane) {
    const double left = rest[lane];
    const double away = centre[lane] + left / more - found->mean[lane];
    found->mean[lane] += away * more / (before + more);
    found->squares[lane] +=
        square[lane] - left * left / more + away * away * before * more / (before + more);
  }
  found->count += count;
}

template <int kLanes>
void AddRows(const Rows& rows, const float* src, Moments* found) {
  for (int64_t row = 0; row < rows.outer; ++row, src += rows.outer_stride) {
    for (int64_t begin = 0; begin < rows.inner; begin += kChunk) {
      const int64_t left = rows.inner - begin;
      Add<kLanes>(src + begin * rows.step, rows, left < kChunk ? left : kChunk, found);
    }
  }
}

inline void FindMoments(const Rows& rows, const float* src, int lanes, Moments* found) {
  if (lanes == 16) return AddRows<16>(rows, src, found);
  if (lanes == 8) return AddRows<8>(rows, src, found);
  AddRows<1>(rows, src, found);
}

}  // namespace
}  // namespace mxplan::statistics
