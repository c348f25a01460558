// The largest of windows for AVX2.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "onednn/maxima/kernels.h"

#pragma GCC target("avx2")
#define MXPLAN_INLINE inline __attribute__((always_inline))

namespace mxplan::maxima {
namespace {

constexpr int64_t kVector = 32;
using Bytes = __m256i;

MXPLAN_INLINE Bytes Load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
MXPLAN_INLINE void Store(uint8_t* to, Bytes x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}
// The first `count` bytes, less than a vector.
MXPLAN_INLINE Bytes LoadFirst(const uint8_t* from, int64_t count) {
  uint8_t bytes[kVector] = {};
  std::memcpy(bytes, from, static_cast<size_t>(count));
  return Load(bytes);
}
MXPLAN_INLINE void StoreFirst(uint8_t* to, int64_t count, Bytes x) {
  uint8_t bytes[kVector];
  Store(bytes, x);
  std::memcpy(to, bytes, static_cast<size_t>(count));
}
template <Element kElement>
MXPLAN_INLINE Bytes Least() {
  return kElement == Element::kSigned ? _mm256_set1_epi8(-128) : _mm256_setzero_si256();
}
template <Element kElement>
MXPLAN_INLINE Bytes Larger(Bytes a, Bytes b) {
  if constexpr (kElement == Element::kShort) return _mm256_max_epu16(a, b);
  return kElement == Element::kSigned ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b);
}

}  // namespace
}  // namespace mxplan::maxima

// Behind what it works with.
#include "onednn/maxima/kernels_impl.h"

namespace mxplan::maxima {

Kernel Avx2Kernel() {
  return {"maxima:avx2",
          ScratchOf,
          {RunAll<Element::kUnsigned>, RunAll<Element::kSigned>, RunAll<Element::kShort>}};
}

}  // namespace mxplan::maxima
