// Vectors of MXPLAN_LANES numbers out of float32 or bfloat16 and back; included once for each
// instruction set, behind lanes_impl.h.  With MXPLAN_MASKS parts of a vector of float32 go by
// AVX-512's masks.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_NUMBERS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_NUMBERS_IMPL_H_

#include <cstdint>
#include <cstring>
#ifdef MXPLAN_MASKS
#include <immintrin.h>
#endif

#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/shorts_impl.h"

namespace mxplan {
namespace {

// A whole vector of either type.
MXPLAN_INLINE Vec LoadAll(const float* from) { return Load(from); }
MXPLAN_INLINE Vec LoadAll(const Short* from) {
  Shorts numbers;
  std::memcpy(&numbers, from, sizeof(numbers));
  return Widened(InLowHalves(numbers));
}
MXPLAN_INLINE void StoreAll(float* to, Vec vec) { Store(to, vec); }
MXPLAN_INLINE void StoreAll(Short* to, Vec vec) {
  Shorts numbers = Rounded(vec);
  std::memcpy(to, &numbers, sizeof(numbers));
}

// The first `count` numbers, fewer than a vector has, and 0 behind them.
MXPLAN_INLINE Vec LoadFirst(const float* from, int64_t count) {
#ifdef MXPLAN_MASKS
  return reinterpret_cast<Vec>(
      _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from));
#else
  float numbers[kLanes] = {};
  std::memcpy(numbers, from, static_cast<size_t>(count) * sizeof(float));
  return Load(numbers);
#endif
}
MXPLAN_INLINE Vec LoadFirst(const Short* from, int64_t count) {
  return Widened(LoadShort(from, count));
}
MXPLAN_INLINE void StoreFirst(float* to, int64_t count, Vec vec) {
#ifdef MXPLAN_MASKS
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1),
                        reinterpret_cast<__m512>(vec));
#else
  float numbers[kLanes];
  Store(numbers, vec);
  std::memcpy(to, numbers, static_cast<size_t>(count) * sizeof(float));
#endif
}
MXPLAN_INLINE void StoreFirst(Short* to, int64_t count, Vec vec) { StoreShort(to, count, vec); }

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_NUMBERS_IMPL_H_
