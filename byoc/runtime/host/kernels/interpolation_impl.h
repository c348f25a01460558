// Weighted sums of rows and of points.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_INTERPOLATION_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_INTERPOLATION_IMPL_H_

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

// Of single elements, with the number of terms known.
template <int kTerms>
void InterpolatePoints(const float* __restrict src, const int32_t* __restrict index,
                       const float* __restrict weights, float* __restrict dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float sum = src[index[i]] * weights[i];
    for (int k = 1; k < kTerms; ++k) sum += src[index[k * count + i]] * weights[k * count + i];
    dst[i] = sum;
  }
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

// The nearest points, without arithmetic.
void PickPoints(const float* __restrict src, const int32_t* __restrict index, int64_t inner,
                float* __restrict dst, int64_t count) {
  if (inner == 1) {
    for (int64_t i = 0; i < count; ++i) dst[i] = src[index[i]];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float* from = src + index[i] * inner;
    for (int64_t k = 0; k < inner; ++k) dst[i * inner + k] = from[k];
  }
}

void SumPointsKernel(const float* src, const int32_t* index, const float* weights, int64_t terms,
                     int64_t inner, float* dst, int64_t count) {
  if (terms == 1) return PickPoints(src, index, inner, dst, count);
  if (inner == 1 && terms == 2) return InterpolatePoints<2>(src, index, weights, dst, count);
  if (inner == 1 && terms == 4) return InterpolatePoints<4>(src, index, weights, dst, count);
  if (inner == 1 && terms == 8) return InterpolatePoints<8>(src, index, weights, dst, count);
  if (inner == 1 && terms == 16) return InterpolatePoints<16>(src, index, weights, dst, count);
  const float* rows[kMostTerms];
  float shares[kMostTerms];
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < terms; ++k) {
      rows[k] = src + index[k * count + i] * inner;
      shares[k] = weights[k * count + i];
    }
    WeightedSumKernel(rows, shares, terms, dst + i * inner, inner);
  }
}

void InterpolateKernel(const float* src, int64_t points, const int32_t* index, const float* weights,
                       int64_t terms, int64_t inner, float* dst, int64_t count) {
  if constexpr (kPicks<float>) {
    const bool held = inner == 1 && points <= 2 * MXPLAN_LANES && count >= MXPLAN_LANES;
    if (held && terms == 2) return PickSums<2>(src, index, weights, dst, count);
    if (held && terms == 4) return PickSums<4>(src, index, weights, dst, count);
  }
  SumPointsKernel(src, index, weights, terms, inner, dst, count);
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_INTERPOLATION_IMPL_H_
