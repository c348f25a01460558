// Pairs of numbers in bfloat16, as words of vectors: the lower half of a word is the first number.
// Included behind vectors.h.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "onednn/attention/kernels.h"
#include "onednn/vectors/shorts_impl.h"

namespace mxplan::attention {
namespace {

constexpr int64_t kPair = 2;
using Words = Ints;

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

// The first number of each pair in float32.
MXPLAN_INLINE Vec First(Words pairs) { return Widened(pairs); }

// sum + first(a) * first(b) + second(a) * second(b)
MXPLAN_INLINE Vec Add(Vec sum, Words a, Words b) { return AddPairs(sum, a, b); }

#ifdef MXPLAN_BF16_INSTRUCTIONS

// The first `count` numbers, 0 behind them; two in a word.
MXPLAN_INLINE Words LoadPairs(const Short* from, int64_t count) {
  return reinterpret_cast<Words>(_mm512_maskz_loadu_epi16(FirstBits(count), from));
}

#else

MXPLAN_INLINE Words LoadPairs(const Short* from, int64_t count) {
  return FirstOf<Words>(from, count);
}

#endif

// Two vectors, rounded, with a number of each in a word.
MXPLAN_INLINE Words Paired(Vec first, Vec second) {
  return InLowHalves(Rounded(first)) | (InLowHalves(Rounded(second)) << kHalf);
}

}  // namespace
}  // namespace mxplan::attention
