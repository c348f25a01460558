// The kernel of channels for AVX-512 with instructions for bfloat16.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/channelwise/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_MASKS
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan::channelwise {
namespace {

template <bool kScaled, bool kShifted, typename Src, typename Dst>
struct Row {
  const Rows& rows;
  Vec least, most;

  template <bool kWhole>
  MXPLAN_INLINE void Vector(const Src* src, Dst* dst, int64_t at, int64_t count) const {
    const Some<kWhole> some{count};
    Vec x = some.From(src + at);
    if constexpr (kScaled) x *= some.From(rows.scale + at);
    if constexpr (kShifted) x += some.From(rows.shift + at);
    x = least > x ? least : x;
    x = most < x ? most : x;
    some.To(dst + at, x);
  }

  MXPLAN_INLINE void All(const Src* src, Dst* dst) const {
    constexpr int64_t kTogether = 4 * kLanes;
    int64_t at = 0;
    for (; at + kTogether <= rows.channels; at += kTogether) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < kTogether; i += kLanes) Vector<true>(src, dst, at + i, kLanes);
    }
    for (; at + kLanes <= rows.channels; at += kLanes) Vector<true>(src, dst, at, kLanes);
    if (at < rows.channels) Vector<false>(src, dst, at, rows.channels - at);
  }
};

template <bool kScaled, bool kShifted, typename Src, typename Dst>
void RunRows(const Rows& rows, const void* src, void* dst, int64_t begin, int64_t end) {
  const Row<kScaled, kShifted, Src, Dst> row{rows, Broadcast(rows.least), Broadcast(rows.most)};
  for (int64_t i = begin * rows.channels; i < end * rows.channels; i += rows.channels) {
    row.All(static_cast<const Src*>(src) + i, static_cast<Dst*>(dst) + i);
  }
}

template <typename Src, typename Dst>
void RunAny(const Rows& rows, const void* src, void* dst, int64_t begin, int64_t end) {
  if (rows.scale && rows.shift) return RunRows<true, true, Src, Dst>(rows, src, dst, begin, end);
  if (rows.scale) return RunRows<true, false, Src, Dst>(rows, src, dst, begin, end);
  RunRows<false, true, Src, Dst>(rows, src, dst, begin, end);
}

}  // namespace

Kernel Avx512Bf16Kernel() {
  return {
      "channelwise:avx512_bf16",
      {{RunAny<float, float>, RunAny<float, Short>}, {RunAny<Short, float>, RunAny<Short, Short>}}};
}

}  // namespace mxplan::channelwise
