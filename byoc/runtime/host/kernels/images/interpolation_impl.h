// Weighted sums of rows and of points.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_IMAGES_INTERPOLATION_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_IMAGES_INTERPOLATION_IMPL_H_

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

void WeightedSumKernel(const float* const* rows, const float* weights, int64_t terms, float* dst,
                       int64_t count) {
  const float* a = rows[0];
  const float w = weights[0];
  int64_t done = 1;
  if (terms == 2) {
    const float* b = rows[1];
    const float v = weights[1];
    for (int64_t i = 0; i < count; ++i) dst[i] = a[i] * w + b[i] * v;
    return;
  }
  if (terms >= 4) {
    const float *b = rows[1], *c = rows[2], *d = rows[3];
    const float v = weights[1], x = weights[2], y = weights[3];
    for (int64_t i = 0; i < count; ++i) dst[i] = (a[i] * w + b[i] * v) + (c[i] * x + d[i] * y);
    done = 4;
  } else {
    for (int64_t i = 0; i < count; ++i) dst[i] = a[i] * w;
  }
  for (int64_t k = done; k < terms; ++k) {
    const float* b = rows[k];
    const float v = weights[k];
    for (int64_t i = 0; i < count; ++i) dst[i] += b[i] * v;
  }
}

typedef float Four __attribute__((vector_size(16)));
typedef double Two __attribute__((vector_size(16)));
typedef int32_t FourPlaces __attribute__((vector_size(16)));

MXPLAN_INLINE Four FourAt(const float* at) {
  Four found;
  __builtin_memcpy(&found, at, sizeof(found));
  return found;
}

MXPLAN_INLINE Four PairsAt(const float* first, const float* second) {
  Two found;
  __builtin_memcpy(&found, first, sizeof(double));
  __builtin_memcpy(reinterpret_cast<char*>(&found) + sizeof(double), second, sizeof(double));
  return Bits<Four>(found);
}

// Four points whose neighbours stand side by side, in rows of two; `turned` has those of a row
// `stride` behind those of the one before.
MXPLAN_INLINE void SumTwos(const float* src, const int32_t* index, int64_t count,
                           const float* turned, int64_t stride, int64_t rows, float* dst) {
  Four a = {}, b = {};
  for (int64_t row = 0; row < rows; ++row, index += 2 * count, turned += stride) {
    a += PairsAt(src + index[0], src + index[1]) * FourAt(turned);
    b += PairsAt(src + index[2], src + index[3]) * FourAt(turned + 4);
  }
  const Four sum = __builtin_shuffle(a, b, (FourPlaces){0, 2, 4, 6}) +
                   __builtin_shuffle(a, b, (FourPlaces){1, 3, 5, 7});
  __builtin_memcpy(dst, &sum, sizeof(sum));
}

// In rows of four.
MXPLAN_INLINE void SumFours(const float* src, const int32_t* index, int64_t count,
                            const float* turned, int64_t stride, int64_t rows, float* dst) {
  Four a = {}, b = {}, c = {}, d = {};
  for (int64_t row = 0; row < rows; ++row, index += 4 * count, turned += stride) {
    a += FourAt(src + index[0]) * FourAt(turned);
    b += FourAt(src + index[1]) * FourAt(turned + 4);
    c += FourAt(src + index[2]) * FourAt(turned + 8);
    d += FourAt(src + index[3]) * FourAt(turned + 12);
  }
  const Four ab = __builtin_shuffle(a, b, (FourPlaces){0, 4, 1, 5}) +
                  __builtin_shuffle(a, b, (FourPlaces){2, 6, 3, 7});
  const Four cd = __builtin_shuffle(c, d, (FourPlaces){0, 4, 1, 5}) +
                  __builtin_shuffle(c, d, (FourPlaces){2, 6, 3, 7});
  const Four sum = __builtin_shuffle(ab, cd, (FourPlaces){0, 1, 4, 5}) +
                   __builtin_shuffle(ab, cd, (FourPlaces){2, 3, 6, 7});
  __builtin_memcpy(dst, &sum, sizeof(sum));
}

// The element at an index; with kSome 0 where that is below 0, by bits, as a jump would be guessed.
template <bool kSome>
MXPLAN_INLINE float ElementAt(const float* src, int32_t index) {
  const int32_t inside = kSome ? ~(index >> 31) : -1;
  return Bits<float>(Bits<int32_t>(src[index & inside]) & inside);
}

// Points one by one: instructions that gather take longer on many processors.
// `terms` may be a number that the compiler knows.
template <bool kSome, typename Terms>
MXPLAN_INLINE void SumEach(const float* src, const Points& points, Terms terms, int64_t begin,
                           int64_t end, float* dst) {
  const int64_t count = points.count;
  const int32_t* index = points.index;
  const float* weights = points.weights;
  for (int64_t i = begin; i < end; ++i) {
    float sum = ElementAt<kSome>(src, index[i]) * weights[i];
    for (int64_t k = 1; k < terms; ++k) {
      sum += ElementAt<kSome>(src, index[k * count + i]) * weights[k * count + i];
    }
    dst[i] = sum;
  }
}

// `rows` may be a number that the compiler knows.
template <bool kSome, int kAcross, typename Rows>
MXPLAN_INLINE void SumTogether(const float* src, const Points& points, Rows rows, float* dst) {
  const int64_t stride = kAcross * points.count, groups = (points.count + 3) / 4;
  for (int64_t at = 0; at < points.together; ++at) {
    const int64_t i = 4 * points.groups[at];
    const float* turned = points.turned + kAcross * i;
    if constexpr (kAcross == 2) {
      SumTwos(src, points.index + i, points.count, turned, stride, rows, dst + i);
    } else {
      SumFours(src, points.index + i, points.count, turned, stride, rows, dst + i);
    }
  }
  for (int64_t at = points.together; at < groups; ++at) {
    const int64_t i = 4 * points.groups[at], end = i + 4 < points.count ? i + 4 : points.count;
    SumEach<kSome>(src, points, rows * int64_t{kAcross}, i, end, dst);
  }
}

template <bool kSome>
void SumTogether(const float* src, const Points& points, float* dst) {
  const int64_t rows = points.terms / points.across;
  using TwoRows = std::integral_constant<int64_t, 2>;
  using FourRows = std::integral_constant<int64_t, 4>;
  if (points.across == 2) {
    if (rows == 1) return SumTogether<kSome, 2>(src, points, One(), dst);
    if (rows == 2) return SumTogether<kSome, 2>(src, points, TwoRows(), dst);
    return SumTogether<kSome, 2>(src, points, rows, dst);
  }
  if (rows == 4) return SumTogether<kSome, 4>(src, points, FourRows(), dst);
  SumTogether<kSome, 4>(src, points, rows, dst);
}

// Flags up to kMostSampled points from `begin` on that have their neighbours side by side.
MXPLAN_INLINE void Together(const Points& points, int64_t across, int64_t begin, int64_t some,
                            uint8_t* flags) {
  MXPLAN_FOR_EACH(i, some) flags[i] = 1;
  for (int64_t row = 0; row < points.terms; row += across) {
    const int32_t* first = points.index + row * points.count + begin;
    MXPLAN_FOR_EACH(i, some) flags[i] &= first[i] >= 0;
    for (int64_t k = 1; k < across; ++k) {
      const int32_t* own = first + k * points.count;
      const auto apart = static_cast<int32_t>(k);
      MXPLAN_FOR_EACH(i, some) flags[i] &= own[i] - first[i] == apart;
    }
  }
}

int64_t FindTogetherKernel(const Points& points, int64_t across, float* turned, int32_t* groups) {
  const int64_t count = points.count, all = (count + 3) / 4;
  uint8_t flags[kMostSampled];
  int64_t found = 0, others = all;
  for (int64_t begin = 0; begin < count; begin += kMostSampled) {
    const int64_t some = count - begin < kMostSampled ? count - begin : kMostSampled;
    Together(points, across, begin, some, flags);
    for (int64_t i = 0; i < some; i += 4) {
      uint32_t four = 0;
      if (i + 4 <= some) __builtin_memcpy(&four, flags + i, sizeof(four));
      const bool together = four == 0x01010101U;
      groups[together ? found : others - 1] = static_cast<int32_t>((begin + i) / 4);
      found += together ? 1 : 0;
      others -= together ? 0 : 1;
    }
  }
  for (int64_t row = 0; row < points.terms; row += across) {
    const float* weights = points.weights + row * count;
    float* to = turned + row * count;
    if (across == 2) {
      MXPLAN_FOR_EACH(i, count) {
        to[2 * i] = weights[i];
        to[2 * i + 1] = weights[count + i];
      }
    } else {
      MXPLAN_FOR_EACH(i, count) {
        to[4 * i] = weights[i];
        to[4 * i + 1] = weights[count + i];
        to[4 * i + 2] = weights[2 * count + i];
        to[4 * i + 3] = weights[3 * count + i];
      }
    }
  }
  return found;
}

// The same of a row that two registers hold; the last points are made twice.
template <int kTerms>
MXPLAN_INLINE void PickSums(const float* src, const int32_t* index, const float* weights,
                            float* dst, int64_t count) {
  using Register = Picked<float>::Register;
  constexpr int64_t kStep = Picked<float>::kCount;
  Register two[2];
  __builtin_memcpy(two, src, sizeof(two));
  for (int64_t begin = 0; begin < count; begin += kStep) {
    const int64_t at = begin + kStep <= count ? begin : count - kStep;
    Register sum = {};
    for (int k = 0; k < kTerms; ++k) {
      Register picked, share;
      Pick<float>(two, index + k * count + at, &picked);
      __builtin_memcpy(&share, weights + k * count + at, sizeof(share));
      sum = k == 0 ? picked * share : sum + picked * share;
    }
    __builtin_memcpy(dst + at, &sum, sizeof(sum));
  }
}

// Of `inner` elements side by side, of any number of terms.
template <bool kSome>
void SumEntries(const float* src, const Points& points, int64_t inner, float* dst) {
  const float* rows[kMostTerms];
  float shares[kMostTerms];
  for (int64_t i = 0; i < points.count; ++i, dst += inner) {
    int64_t counted = 0;
    for (int64_t k = 0; k < points.terms; ++k) {
      const int32_t place = points.index[k * points.count + i];
      if (kSome && place < 0) continue;
      rows[counted] = src + place * inner;
      shares[counted] = points.weights[k * points.count + i];
      ++counted;
    }
    if (counted == 0) {
      for (int64_t k = 0; k < inner; ++k) dst[k] = 0.0F;
    } else {
      WeightedSumKernel(rows, shares, counted, dst, inner);
    }
  }
}

// The nearest points, without arithmetic.
template <bool kSome>
void PickEntries(const float* __restrict src, const int32_t* __restrict index, int64_t inner,
                 float* __restrict dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i, dst += inner) {
    const float* from = src + index[i] * inner;
    if (kSome && index[i] < 0) {
      for (int64_t k = 0; k < inner; ++k) dst[k] = 0.0F;
    } else {
      for (int64_t k = 0; k < inner; ++k) dst[k] = from[k];
    }
  }
}

template <bool kSome>
void PickPoints(const float* __restrict src, const int32_t* __restrict index, int64_t inner,
                float* __restrict dst, int64_t count) {
  if (inner > 1) return PickEntries<kSome>(src, index, inner, dst, count);
  for (int64_t i = 0; i < count; ++i) {
    dst[i] = ElementAt<kSome>(src, index[i]);
  }
}

template <bool kSome>
void SumPoints(const float* src, const Points& points, int64_t inner, float* dst) {
  if (points.terms == 1) return PickPoints<kSome>(src, points.index, inner, dst, points.count);
  if (inner > 1) return SumEntries<kSome>(src, points, inner, dst);
  if (points.groups != nullptr) return SumTogether<kSome>(src, points, dst);
  SumEach<kSome>(src, points, points.terms, 0, points.count, dst);
}

void SumPointsKernel(const float* src, const Points& points, int64_t inner, float* dst) {
  if (points.some) return SumPoints<true>(src, points, inner, dst);
  SumPoints<false>(src, points, inner, dst);
}

void InterpolateKernel(const float* src, int64_t extent, const Points& points, int64_t inner,
                       float* dst) {
  if constexpr (kPicks<float>) {
    const bool held = inner == 1 && extent <= 2 * MXPLAN_LANES && points.count >= MXPLAN_LANES;
    if (held && points.terms == 2) {
      return PickSums<2>(src, points.index, points.weights, dst, points.count);
    }
    if (held && points.terms == 4) {
      return PickSums<4>(src, points.index, points.weights, dst, points.count);
    }
  }
  SumPoints<false>(src, points, inner, dst);
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_IMAGES_INTERPOLATION_IMPL_H_
