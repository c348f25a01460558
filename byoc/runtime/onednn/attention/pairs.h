// Pairs of numbers in bfloat16, as words of vectors: the lower half of a word is the first number.
// With MXPLAN_BF16_INSTRUCTIONS by AVX-512's instructions for them, without by any vectors, which
// is how tests run the kernels on processors that have none.  Included behind vectors.h.
#include <algorithm>
#include <cstdint>
#include <cstring>
#ifdef MXPLAN_BF16_INSTRUCTIONS
#include <immintrin.h>
#endif

#include "onednn/attention/kernels.h"

namespace mxplan::attention {
namespace {

constexpr int64_t kPair = 2;
constexpr int64_t kHalf = 16;  // bits of a number
using Words = Ints;
using Shorts = Short __attribute__((vector_size(2 * MXPLAN_LANES)));

constexpr int64_t Pairs(int64_t count) { return (count + 1) / kPair; }

MXPLAN_INLINE Words AllWords(int32_t word) { return Words{} + word; }
MXPLAN_INLINE Words LoadWords(const void* from) {
  Words words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}
MXPLAN_INLINE void StoreWords(void* to, Words words) { std::memcpy(to, &words, sizeof(words)); }

// Two numbers that stand side by side.
struct PairAt {
  MXPLAN_INLINE int32_t operator()(const Short* from) const {
    int32_t word = 0;
    std::memcpy(&word, from, sizeof(word));
    return word;
  }
};
// The last number, and 0.
struct LastAt {
  MXPLAN_INLINE int32_t operator()(const Short* from) const { return *from; }
};

MXPLAN_INLINE Words InLowHalves(Shorts numbers) { return __builtin_convertvector(numbers, Words); }

// The first number of each pair in float32.
MXPLAN_INLINE Vec First(Words pairs) { return reinterpret_cast<Vec>(pairs << kHalf); }

#ifdef MXPLAN_BF16_INSTRUCTIONS

MXPLAN_INLINE uint32_t FirstBits(int64_t count) {
  return count >= 2 * kHalf ? ~0U : (1U << std::max<int64_t>(count, 0)) - 1;
}

// sum + first(a) * first(b) + second(a) * second(b)
MXPLAN_INLINE Vec Add(Vec sum, Words a, Words b) {
  auto result = _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a),
                                 reinterpret_cast<__m512bh>(b));
  return reinterpret_cast<Vec>(result);
}

MXPLAN_INLINE Shorts Rounded(Vec numbers) {
  return reinterpret_cast<Shorts>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(numbers)));
}

// The first `count` numbers, 0 behind them; one in a word.
MXPLAN_INLINE Words LoadShort(const Short* from, int64_t count) {
  auto mask = static_cast<__mmask16>(FirstBits(count));
  return InLowHalves(reinterpret_cast<Shorts>(_mm256_maskz_loadu_epi16(mask, from)));
}

// The same, two in a word.
MXPLAN_INLINE Words LoadPairs(const Short* from, int64_t count) {
  return reinterpret_cast<Words>(_mm512_maskz_loadu_epi16(FirstBits(count), from));
}

MXPLAN_INLINE void StoreShort(Short* to, int64_t count, Vec numbers) {
  auto mask = static_cast<__mmask16>(FirstBits(count));
  _mm256_mask_storeu_epi16(to, mask, reinterpret_cast<__m256i>(Rounded(numbers)));
}

#else

MXPLAN_INLINE Vec Second(Words pairs) { return reinterpret_cast<Vec>(pairs >> kHalf << kHalf); }

MXPLAN_INLINE Vec Add(Vec sum, Words a, Words b) {
  return sum + First(a) * First(b) + Second(a) * Second(b);
}

MXPLAN_INLINE Shorts Rounded(Vec numbers) {
  constexpr int32_t kBelowHalf = 0x7fff, kQuietNan = 0x7fc00000;
  auto bits = reinterpret_cast<Words>(numbers);
  Words rounded = bits + kBelowHalf + (bits >> kHalf & 1);
  Words kept = numbers == numbers ? rounded : AllWords(kQuietNan);
  return __builtin_convertvector(kept >> kHalf & 0xffff, Shorts);
}

template <typename Vector>
MXPLAN_INLINE Vector FirstOf(const Short* from, int64_t count) {
  Vector vector{};
  int64_t there = std::clamp<int64_t>(count, 0, sizeof(Vector) / sizeof(Short));
  std::memcpy(&vector, from, static_cast<size_t>(there) * sizeof(Short));
  return vector;
}

MXPLAN_INLINE Words LoadShort(const Short* from, int64_t count) {
  return InLowHalves(FirstOf<Shorts>(from, count));
}

MXPLAN_INLINE Words LoadPairs(const Short* from, int64_t count) {
  return FirstOf<Words>(from, count);
}

MXPLAN_INLINE void StoreShort(Short* to, int64_t count, Vec numbers) {
  Shorts rounded = Rounded(numbers);
  std::memcpy(to, &rounded, static_cast<size_t>(std::min(count, kLanes)) * sizeof(Short));
}

#endif

// Two vectors, rounded, with a number of each in a word.
MXPLAN_INLINE Words Paired(Vec first, Vec second) {
  return InLowHalves(Rounded(first)) | (InLowHalves(Rounded(second)) << kHalf);
}

}  // namespace
}  // namespace mxplan::attention
