// The largest of windows for AVX-512.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "onednn/maxima/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#define MXPLAN_INLINE inline __attribute__((always_inline))

namespace mxplan::maxima {
namespace {

constexpr int64_t kVector = 64;
using Bytes = __m512i;

MXPLAN_INLINE Bytes Load(const uint8_t* from) { return _mm512_loadu_si512(from); }
MXPLAN_INLINE void Store(uint8_t* to, Bytes x) { _mm512_storeu_si512(to, x); }
// The first `count` bytes, less than a vector.
MXPLAN_INLINE uint64_t FirstOf(int64_t count) { return (1ULL << count) - 1; }
MXPLAN_INLINE Bytes LoadFirst(const uint8_t* from, int64_t count) {
  return _mm512_maskz_loadu_epi8(FirstOf(count), from);
}
MXPLAN_INLINE void StoreFirst(uint8_t* to, int64_t count, Bytes x) {
  _mm512_mask_storeu_epi8(to, FirstOf(count), x);
}
template <Element kElement>
MXPLAN_INLINE Bytes Least() {
  return kElement == Element::kSigned ? _mm512_set1_epi8(-128) : _mm512_setzero_si512();
}
template <Element kElement>
MXPLAN_INLINE Bytes Larger(Bytes a, Bytes b) {
  if constexpr (kElement == Element::kShort) return _mm512_max_epu16(a, b);
  return kElement == Element::kSigned ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b);
}

}  // namespace
}  // namespace mxplan::maxima

// Behind what it works with.
#include "onednn/maxima/kernels_impl.h"

namespace mxplan::maxima {

Kernel Avx512Kernel() {
  return {"maxima:avx512",
          ScratchOf,
          {RunAll<Element::kUnsigned>, RunAll<Element::kSigned>, RunAll<Element::kShort>}};
}

}  // namespace mxplan::maxima
