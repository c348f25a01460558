// Numbers in bfloat16 as shorts of vectors; included once for each instruction set, behind
// lanes_impl.h.  With MXPLAN_BF16_INSTRUCTIONS by AVX-512's instructions for them, without by any
// vectors, which is how tests run kernels on processors that have none.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_SHORTS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_SHORTS_IMPL_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#ifdef MXPLAN_BF16_INSTRUCTIONS
#include <immintrin.h>
#endif

#include "onednn/vectors/lanes_impl.h"

namespace mxplan {
namespace {

using Short = uint16_t;
using Shorts = Short __attribute__((vector_size(2 * MXPLAN_LANES)));
constexpr int64_t kHalf = 16;  // bits of a number

MXPLAN_INLINE Ints InLowHalves(Shorts numbers) { return __builtin_convertvector(numbers, Ints); }

// Numbers in low halves of words in float32.
MXPLAN_INLINE Vec Widened(Ints numbers) { return reinterpret_cast<Vec>(numbers << kHalf); }

// Those in high halves, whatever the low ones are.
MXPLAN_INLINE Vec WidenedHigh(Ints numbers) {
  return reinterpret_cast<Vec>(numbers & static_cast<int32_t>(0xffff0000U));
}

#ifdef MXPLAN_BF16_INSTRUCTIONS

// sum + the product of both numbers in low halves + that of those in high halves.
MXPLAN_INLINE Vec AddPairs(Vec sum, Ints a, Ints b) {
  return reinterpret_cast<Vec>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
}

MXPLAN_INLINE uint32_t FirstBits(int64_t count) {
  return count >= 2 * kHalf ? ~0U : (1U << std::max<int64_t>(count, 0)) - 1;
}

MXPLAN_INLINE Shorts Rounded(Vec numbers) {
  return reinterpret_cast<Shorts>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(numbers)));
}

// The first `count` numbers, 0 behind them; one in a word.
MXPLAN_INLINE Ints LoadShort(const Short* from, int64_t count) {
  auto mask = static_cast<__mmask16>(FirstBits(count));
  return InLowHalves(reinterpret_cast<Shorts>(_mm256_maskz_loadu_epi16(mask, from)));
}

MXPLAN_INLINE void StoreShort(Short* to, int64_t count, Vec numbers) {
  auto mask = static_cast<__mmask16>(FirstBits(count));
  _mm256_mask_storeu_epi16(to, mask, reinterpret_cast<__m256i>(Rounded(numbers)));
}

#else

MXPLAN_INLINE Vec AddPairs(Vec sum, Ints a, Ints b) {
  return sum + Widened(a) * Widened(b) + WidenedHigh(a) * WidenedHigh(b);
}

MXPLAN_INLINE Shorts Rounded(Vec numbers) {
  constexpr int32_t kBelowHalf = 0x7fff, kQuietNan = 0x7fc00000;
  auto bits = reinterpret_cast<Ints>(numbers);
  Ints rounded = bits + kBelowHalf + (bits >> kHalf & 1);
  Ints kept = numbers == numbers ? rounded : Ints{} + kQuietNan;
  return __builtin_convertvector(kept >> kHalf & 0xffff, Shorts);
}

template <typename Vector>
MXPLAN_INLINE Vector FirstOf(const Short* from, int64_t count) {
  Vector vector{};
  int64_t there = std::clamp<int64_t>(count, 0, sizeof(Vector) / sizeof(Short));
  std::memcpy(&vector, from, static_cast<size_t>(there) * sizeof(Short));
  return vector;
}

MXPLAN_INLINE Ints LoadShort(const Short* from, int64_t count) {
  return InLowHalves(FirstOf<Shorts>(from, count));
}

MXPLAN_INLINE void StoreShort(Short* to, int64_t count, Vec numbers) {
  Shorts rounded = Rounded(numbers);
  std::memcpy(to, &rounded, static_cast<size_t>(std::min(count, kLanes)) * sizeof(Short));
}

#endif

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_SHORTS_IMPL_H_
