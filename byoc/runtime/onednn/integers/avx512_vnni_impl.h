// Operations of AVX-512 VNNI for the loops over vectors: see result_impl.h.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/integers/kernels.h"

// Headers of GCC leave what no lane takes over undefined, and warn of that themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "onednn/vectors/lanes_impl.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kNumbers = 4;                                 // in a lane
constexpr int kMostVectors = 4;                                 // of a panel
constexpr int kPixelsBy[1 + kMostVectors] = {0, 12, 12, 8, 6};  // that its sums are of together

constexpr int kGroupsAtOnce = 1;

MXPLAN_INLINE Ints LoadFactors(const int8_t* from) { return LoadWords(from); }

MXPLAN_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return reinterpret_cast<Ints>(_mm512_dpbusd_epi32(
      reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

MXPLAN_INLINE Vec Whole(Vec x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return reinterpret_cast<Vec>(_mm512_roundscale_ps(reinterpret_cast<__m512>(x), kNearest));
}

MXPLAN_INLINE Ints Nearest(Vec x) {
  return reinterpret_cast<Ints>(_mm512_cvtps_epi32(reinterpret_cast<__m512>(x)));
}

MXPLAN_INLINE uint64_t FirstOf(int64_t count) { return (1ULL << count) - 1; }  // 63 at most

MXPLAN_INLINE Vec LoadFirst(const float* from, int64_t count) {
  const auto mask = static_cast<__mmask16>(FirstOf(count));
  return reinterpret_cast<Vec>(_mm512_maskz_loadu_ps(mask, from));
}

MXPLAN_INLINE void StoreFirst(float* to, int64_t count, Vec x) {
  const auto mask = static_cast<__mmask16>(FirstOf(count));
  _mm512_mask_storeu_ps(to, mask, reinterpret_cast<__m512>(x));
}

MXPLAN_INLINE Ints FourOf(const uint8_t* from) {
  int32_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return reinterpret_cast<Ints>(_mm512_set1_epi32(word));
}

MXPLAN_INLINE Ints SomeOf(const uint8_t* from, int64_t count) {
  const __m128i bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>(FirstOf(count)), from);
  return reinterpret_cast<Ints>(_mm512_broadcastd_epi32(bytes));
}

template <bool kSigned>
MXPLAN_INLINE Ints WidenBytes(const void* from, int64_t count) {
  const __m128i bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>(FirstOf(count)), from);
  return reinterpret_cast<Ints>(kSigned ? _mm512_cvtepi8_epi32(bytes)
                                        : _mm512_cvtepu8_epi32(bytes));
}

template <int kQuarter>
MXPLAN_INLINE __m128i Quarter(__m512i bytes) {
  return _mm512_extracti32x4_epi32(bytes, kQuarter);
}

// Packing works on each quarter of a vector, so that it takes four vectors of words to bytes in the
// order 0, 4, 8, 12 of words, and so on.
template <int kPixels, int kVectors, bool kSigned>
MXPLAN_INLINE void StoreBytes(uint8_t* to, int64_t pixel, const Ints* words, int64_t count) {
  constexpr int kCount = kPixels * kVectors;
  const auto at = [&](int i) {
    return reinterpret_cast<__m512i>(words[i < kCount ? i : kCount - 1]);
  };
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i low = _mm512_packs_epi32(at(0), at(1));
  const __m512i high = kCount > 2 ? _mm512_packs_epi32(at(2), at(3)) : low;
  const __m512i packed = kSigned ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  const __m512i bytes = _mm512_permutexvar_epi32(order, packed);
  const bool whole = count == kVectors * kLanes;
  if constexpr (kVectors > 2) {
    if (!whole) {
      _mm512_mask_storeu_epi8(to, FirstOf(count), bytes);
    } else if constexpr (kVectors == 4) {
      _mm512_storeu_si512(to, bytes);
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(bytes));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + 2, Quarter<2>(bytes));
    }
  } else if constexpr (kVectors == 2) {
    const auto mask = static_cast<__mmask32>(FirstOf(count));
    const __m256i first = _mm512_castsi512_si256(bytes);
    const __m256i second = _mm512_extracti64x4_epi64(bytes, 1);
    if (whole) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), first);
      if (kPixels > 1) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + pixel), second);
    } else {
      _mm256_mask_storeu_epi8(to, mask, first);
      if (kPixels > 1) _mm256_mask_storeu_epi8(to + pixel, mask, second);
    }
  } else {
    const auto mask = static_cast<__mmask16>(FirstOf(count));
    const auto store = [&](int64_t p, __m128i one) {
      if (p >= kPixels) return;
      if (whole) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + p * pixel), one);
      } else {
        _mm_mask_storeu_epi8(to + p * pixel, mask, one);
      }
    };
    store(0, _mm512_castsi512_si128(bytes));
    store(1, Quarter<1>(bytes));
    store(2, Quarter<2>(bytes));
    store(3, Quarter<3>(bytes));
  }
}

}  // namespace
}  // namespace mxplan::integers
