// Functions of one number.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_UNARY_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_UNARY_IMPL_H_

#include "host/kernels/angles_impl.h"
#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

// 2^k for a k from -126 to 127.
MXPLAN_INLINE float PowerOfTwo(int32_t k) { return Bits<float>((k + 127) << 23); }

// exp(x) = 2^n exp(r), r within half a logarithm of two of 0.  Arguments beyond those that float32
// holds the result of become the nearest that overflow, or vanish.
MXPLAN_INLINE float Exp(float x) {
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23: sums with it are rounded to integers
  constexpr float kLog2High = 0.693359375F, kLog2Low = -2.12194440e-4F;
  float t = x > 89.0F ? 89.0F : x;
  t = t < -104.0F ? -104.0F : t;
  const float shifted = t * 1.442695041F + kShift;
  const int32_t n = Bits<int32_t>(shifted) - Bits<int32_t>(kShift);
  const float whole = shifted - kShift;
  const float r = (t - whole * kLog2High) - whole * kLog2Low;
  float p = 1.393370087e-03F;
  p = p * r + 8.363181007e-03F;
  p = p * r + 4.166646446e-02F;
  p = p * r + 1.666657697e-01F;
  p = p * r + 5.000000014e-01F;
  p = (p * r) * r + r + 1.0F;
  const int32_t half = (x == x ? n : 0) >> 1;  // in two factors: 2^n alone may leave float32
  return p * PowerOfTwo(half) * PowerOfTwo((x == x ? n : 0) - half);
}

// log(x) = n log(2) + log(1 + f) for x = 2^n (1 + f), with 1 + f within a factor of sqrt(2) of 1: n
// is 0 near 1, so that small logarithms keep their digits.  S. Moshier's polynomial (Cephes).
MXPLAN_INLINE float Log(float x) {
  constexpr float kLeast = 1.17549435e-38F;  // of the normal numbers
  constexpr float kScale = 8388608.0F;       // 2^23
  constexpr int32_t kRoot = 0x3f3504f3;      // of 1/2
  const float normal = x < kLeast ? x * kScale : x;
  const int32_t above = Bits<int32_t>(normal) - kRoot;
  const float f = Bits<float>((above & 0x007fffff) + kRoot) - 1.0F;
  const float n = static_cast<float>(above >> 23) - (x < kLeast ? 23.0F : 0.0F);
  const float square = f * f;
  float p = 7.0376836292e-2F;
  p = p * f - 1.1514610310e-1F;
  p = p * f + 1.1676998740e-1F;
  p = p * f - 1.2420140846e-1F;
  p = p * f + 1.4249322787e-1F;
  p = p * f - 1.6668057665e-1F;
  p = p * f + 2.0000714765e-1F;
  p = p * f - 2.4999993993e-1F;
  p = p * f + 3.3333331174e-1F;
  const float tail = p * f * square + n * -2.12194440e-4F - 0.5F * square;
  const float result = (f + tail) + n * 0.693359375F;
  const float some = x < __builtin_inff() ? result : x;  // infinity, or no number
  return x > 0 ? some : (x == 0 ? -__builtin_inff() : __builtin_nanf(""));
}

// erf by a polynomial in x^2 up to 1, and 1 - exp of one in x beyond.
MXPLAN_INLINE float Erf(float x) {
  const float size = x < 0 ? -x : x;
  const float square = size * size;
  float near = -9.673590184e-06F;
  near = near * square + 1.126825367e-04F;
  near = near * square - 8.484396520e-04F;
  near = near * square + 5.221053410e-03F;
  near = near * square - 2.686543831e-02F;
  near = near * square + 1.128378262e-01F;
  near = near * square - 3.761263848e-01F;
  near = near * square + 1.128379167e+00F;
  const float t = size > 4.0F ? 4.0F : size;  // erf(4) is 1 in float32
  float far = 1.614061601e-06F;
  far = far * t - 4.559062240e-05F;
  far = far * t + 5.927695375e-04F;
  far = far * t - 4.740222340e-03F;
  far = far * t + 2.636471736e-02F;
  far = far * t - 1.099782451e-01F;
  far = far * t - 6.319370937e-01F;
  far = far * t - 1.130166676e+00F;
  far = far * t + 3.032129692e-04F;
  const float beyond = 1.0F - Exp(far);
  const float result = x < 0 ? -beyond : beyond;
  return size > 1.0F ? result : near * x;  // a NaN compares with nothing, and goes on in near * x
}

MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kAbs>, float x) {
  return Bits<float>(Bits<uint32_t>(x) & 0x7fffffffU);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kCeil>, float x) {
  return __builtin_ceilf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kErf>, float x) { return Erf(x); }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kExp>, float x) { return Exp(x); }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kFloor>, float x) {
  return __builtin_floorf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kLog>, float x) { return Log(x); }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kNegative>, float x) { return -x; }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kRelu>, float x) {
  return x < 0 ? 0.0F : x;  // NaN stays
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kRound>, float x) {
  return __builtin_rintf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kRsqrt>, float x) {
  return 1.0F / __builtin_sqrtf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kSign>, float x) {
  const float sign = x > 0 ? 1.0F : -1.0F;
  return x == 0 || x != x ? x + 0.0F : sign;
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kSqrt>, float x) {
  return __builtin_sqrtf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kSquare>, float x) { return x * x; }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kTrunc>, float x) {
  return __builtin_truncf(x);
}

template <Unary op>
void UnaryLoop(const Strided& src, const Written& dst, const Extent& extent) {
  for (int64_t row = 0; row < extent.rows; ++row) {
    const auto x = Row<float>(src, row, One());
    float* z = Row<float>(dst, row);
    MXPLAN_FOR_EACH(i, extent.count) z[i] = Apply(std::integral_constant<Unary, op>(), x[i]);
  }
}

template <>
void UnaryLoop<Unary::kCos>(const Strided& src, const Written& dst, const Extent& extent) {
  AngleLoop<true>(src, dst, extent);
}

template <>
void UnaryLoop<Unary::kSin>(const Strided& src, const Written& dst, const Extent& extent) {
  AngleLoop<false>(src, dst, extent);
}

void UnaryKernel(Unary op, Strided src, Written dst, Extent extent) {
#define MXPLAN_CASE(name) \
  case Unary::name:       \
    return UnaryLoop<Unary::name>(src, dst, extent);
  switch (op) {
    MXPLAN_CASE(kAbs)
    MXPLAN_CASE(kCeil)
    MXPLAN_CASE(kCos)
    MXPLAN_CASE(kErf)
    MXPLAN_CASE(kExp)
    MXPLAN_CASE(kFloor)
    MXPLAN_CASE(kLog)
    MXPLAN_CASE(kNegative)
    MXPLAN_CASE(kRelu)
    MXPLAN_CASE(kRound)
    MXPLAN_CASE(kRsqrt)
    MXPLAN_CASE(kSign)
    MXPLAN_CASE(kSin)
    MXPLAN_CASE(kSqrt)
    MXPLAN_CASE(kSquare)
    MXPLAN_CASE(kTrunc)
  }
#undef MXPLAN_CASE
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_UNARY_IMPL_H_
