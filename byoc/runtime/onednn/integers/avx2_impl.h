// Operations of AVX2 for the loops over vectors: see result_impl.h.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "onednn/integers/kernels.h"
#include "onednn/vectors/lanes_impl.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kNumbers = 2;                         // in a lane
constexpr int kMostVectors = 2;                         // of a panel
constexpr int kPixelsBy[1 + kMostVectors] = {0, 6, 6};  // that its sums are of together
constexpr int kGroupsAtOnce = 4;                        // without a jump between them

MXPLAN_INLINE __m128i Load16(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

MXPLAN_INLINE Ints LoadFactors(const int8_t* from) {
  return reinterpret_cast<Ints>(_mm256_cvtepi8_epi16(Load16(from)));
}

MXPLAN_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return sum + reinterpret_cast<Ints>(
                   _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

MXPLAN_INLINE Vec Whole(Vec x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return reinterpret_cast<Vec>(_mm256_round_ps(reinterpret_cast<__m256>(x), kNearest));
}

MXPLAN_INLINE Ints Nearest(Vec x) {
  return reinterpret_cast<Ints>(_mm256_cvtps_epi32(reinterpret_cast<__m256>(x)));
}

MXPLAN_INLINE Vec LoadFirst(const float* from, int64_t count) {
  return count == kLanes ? Load(from) : LoadSome(from, count);
}

MXPLAN_INLINE void StoreFirst(float* to, int64_t count, Vec x) {
  if (count == kLanes) return Store(to, x);
  StoreSome(to, x, count);
}

MXPLAN_INLINE Ints FourOf(const uint8_t* from) {
  int32_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return Ints{} + word;
}

MXPLAN_INLINE Ints SomeOf(const uint8_t* from, int64_t count) {
  int32_t word = 0;
  std::memcpy(&word, from, static_cast<size_t>(count));
  return Ints{} + word;
}

template <bool kSigned>
MXPLAN_INLINE Ints WidenBytes(const void* from, int64_t count) {
  __m128i bytes = _mm_setzero_si128();
  if (count == kLanes) {
    bytes = _mm_loadl_epi64(static_cast<const __m128i*>(from));
  } else {
    std::memcpy(&bytes, from, static_cast<size_t>(count));
  }
  return reinterpret_cast<Ints>(kSigned ? _mm256_cvtepi8_epi32(bytes)
                                        : _mm256_cvtepu8_epi32(bytes));
}

// The first `count` of each pixel's bytes.  Not inlined: they are stored by way of memory, to which
// whole vectors would go with them.
template <int kPixels, int kVectors>
__attribute__((noinline)) void StoreSomeBytes(uint8_t* to, int64_t pixel, __m256i bytes,
                                              int64_t count) {
  uint8_t all[sizeof(bytes)];
  std::memcpy(all, &bytes, sizeof(bytes));
  for (int p = 0; p < kPixels; ++p) {
    std::memcpy(to + p * pixel, all + p * kVectors * kLanes, static_cast<size_t>(count));
  }
}

// Packing works on each half of a vector, so that it takes four vectors of words to bytes in the
// order 0, 2, 4, 6 of halves and then the others.
template <int kPixels, int kVectors, bool kSigned>
MXPLAN_INLINE void StoreBytes(uint8_t* to, int64_t pixel, const Ints* words, int64_t count) {
  constexpr int kCount = kPixels * kVectors;
  const auto at = [&](int i) {
    return reinterpret_cast<__m256i>(words[i < kCount ? i : kCount - 1]);
  };
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i low = _mm256_packs_epi32(at(0), at(1));
  const __m256i high = kCount > 2 ? _mm256_packs_epi32(at(2), at(3)) : low;
  const __m256i packed = kSigned ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  const __m256i bytes = _mm256_permutevar8x32_epi32(packed, order);
  if (count != kVectors * kLanes) {
    return StoreSomeBytes<kPixels, kVectors>(to, pixel, bytes, count);
  }
  const __m128i first = _mm256_castsi256_si128(bytes), second = _mm256_extracti128_si256(bytes, 1);
  if constexpr (kVectors == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), first);
    if (kPixels > 1) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + pixel), second);
  } else {
    const auto store = [&](int64_t p, __m128i half) {
      if (p < kPixels) _mm_storel_epi64(reinterpret_cast<__m128i*>(to + p * pixel), half);
    };
    store(0, first);
    store(1, _mm_unpackhi_epi64(first, first));
    store(2, second);
    store(3, _mm_unpackhi_epi64(second, second));
  }
}

// Numbers of src as words, with the zero point taken off.
template <bool kSigned>
MXPLAN_INLINE void WidenAs(const uint8_t* from, int64_t count, int32_t zero, int16_t* to) {
  constexpr int64_t kTogether = 16;
  const __m256i zeros = _mm256_set1_epi16(static_cast<int16_t>(zero));
  int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    const __m128i bytes = Load16(from + i);
    const __m256i words = kSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_sub_epi16(words, zeros));
  }
  for (; i < count; ++i) {
    const int32_t number = kSigned ? static_cast<int8_t>(from[i]) : from[i];
    to[i] = static_cast<int16_t>(number - zero);
  }
}

inline void Widen(const Source& src, const uint8_t* from, int64_t count, int16_t* to) {
  if (src.is_signed) {
    WidenAs<true>(from, count, src.zero, to);
  } else {
    WidenAs<false>(from, count, src.zero, to);
  }
}

}  // namespace
}  // namespace mxplan::integers
