// Windows over each channel by itself for AVX-512 with instructions for bfloat16.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_MASKS
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/shorts_impl.h"

namespace mxplan::depthwise {
namespace {

// Vectors of channels in the order in which they are summed: those of even numbers, then those of
// odd ones.  Two have them in a vector each, and one in its halves.

constexpr uint32_t kHighHalves = 0xaaaaaaaaU;  // of words

MXPLAN_INLINE __m512i Indices32(const int16_t (&places)[32]) { return _mm512_loadu_si512(places); }

// A block, whole or the channels of `mask` and zeros.
template <bool kWhole>
MXPLAN_INLINE void LoadApart(const Short* from, uint32_t mask, Vec (&x)[2]) {
  const __m512i numbers = kWhole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16(mask, from);
  const auto words = reinterpret_cast<Ints>(numbers);
  x[0] = Widened(words);
  x[1] = WidenedHigh(words);
}

// Up to half a block, likewise.
template <bool>
MXPLAN_INLINE void LoadApart(const Short* from, uint32_t mask, Vec (&x)[1]) {
  alignas(64) static constexpr int16_t kPlaces[32] = {0,  0, 0,  2, 0,  4,  0, 6,  0, 8, 0,
                                                      10, 0, 12, 0, 14, 0,  1, 0,  3, 0, 5,
                                                      0,  7, 0,  9, 0,  11, 0, 13, 0, 15};
  const __m256i numbers = _mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), from);
  x[0] = reinterpret_cast<Vec>(_mm512_maskz_permutexvar_epi16(kHighHalves, Indices32(kPlaces),
                                                              _mm512_castsi256_si512(numbers)));
}

MXPLAN_INLINE void LoadWeights(const float* from, Vec (&x)[2]) {
  x[0] = Load(from);
  x[1] = Load(from + kLanes);
}

MXPLAN_INLINE void LoadWeights(const float* from, Vec (&x)[1]) {
  const __m256 even = _mm256_loadu_ps(from), odd = _mm256_loadu_ps(from + kLanes);
  x[0] = reinterpret_cast<Vec>(_mm512_insertf32x8(_mm512_castps256_ps512(even), odd, 1));
}

// From the order of channels into that of sums, and back.
MXPLAN_INLINE void SetApart(Vec (&x)[2]) {
  const Vec even = __builtin_shufflevector(x[0], x[1], 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22,
                                           24, 26, 28, 30);
  x[1] = __builtin_shufflevector(x[0], x[1], 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
                                 31);
  x[0] = even;
}

MXPLAN_INLINE void SetApart(Vec (&x)[1]) {
  x[0] = __builtin_shufflevector(x[0], x[0], 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
}

MXPLAN_INLINE void BringTogether(Vec (&x)[2]) {
  const Vec low =
      __builtin_shufflevector(x[0], x[1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  x[1] = __builtin_shufflevector(x[0], x[1], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                 15, 31);
  x[0] = low;
}

MXPLAN_INLINE void BringTogether(Vec (&x)[1]) {
  x[0] = __builtin_shufflevector(x[0], x[0], 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
}

// Rounded, and back in the order of channels.
template <bool kWhole>
MXPLAN_INLINE void StoreTogether(Short* to, uint32_t mask, const Vec (&x)[2]) {
  alignas(64) static constexpr int16_t kPlaces[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512bh apart =
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(x[1]), reinterpret_cast<__m512>(x[0]));
  const __m512i numbers =
      _mm512_permutexvar_epi16(Indices32(kPlaces), reinterpret_cast<__m512i>(apart));
  if (kWhole) {
    _mm512_storeu_si512(to, numbers);
  } else {
    _mm512_mask_storeu_epi16(to, mask, numbers);
  }
}

template <bool>
MXPLAN_INLINE void StoreTogether(Short* to, uint32_t mask, const Vec (&x)[1]) {
  Vec together[1] = {x[0]};
  BringTogether(together);
  _mm256_mask_storeu_epi16(to, static_cast<__mmask16>(mask),
                           reinterpret_cast<__m256i>(Rounded(together[0])));
}

}  // namespace
}  // namespace mxplan::depthwise

// Behind what it works with.
#include "onednn/depthwise/kernels_impl.h"

namespace mxplan::depthwise {

Kernel Avx512Bf16Kernel() { return {"depthwise:avx512_bf16", Run}; }

}  // namespace mxplan::depthwise
