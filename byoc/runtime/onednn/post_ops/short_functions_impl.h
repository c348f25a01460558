// Functions of vectors whose results are rounded to bfloat16; included once for each instruction
// set, with MXPLAN_BF16_INSTRUCTIONS.  Relative errors are below 2^-16 where rounding makes ones of
// 2^-8.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_SHORT_FUNCTIONS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_SHORT_FUNCTIONS_IMPL_H_

#include <immintrin.h>

#include <cstdint>

#include "onednn/post_ops/apply_impl.h"

namespace mxplan {
namespace {

// The compiler takes the forms without a mask for ones that read what nobody has written.
constexpr __mmask16 kAll = 0xffff;

// 1 / x of what is finite: a guess of 14 bits, and a step of Newton's.
MXPLAN_INLINE Vec ShortReciprocal(Vec x) {
  const Vec guess = reinterpret_cast<Vec>(_mm512_maskz_rcp14_ps(kAll, reinterpret_cast<__m512>(x)));
  return guess + guess * (1.0F - x * guess);
}

// 2^x: that of the fraction, by the polynomial of least relative error (2.6e-6), times that of the
// integer below x.
MXPLAN_INLINE Vec ShortPowerOfTwo(Vec x) {
  constexpr int kBelow = 1;  // x less the integer below it
  const Vec f =
      reinterpret_cast<Vec>(_mm512_maskz_reduce_ps(kAll, reinterpret_cast<__m512>(x), kBelow));
  const Vec power =
      1.00000259F + f * (0.69300383F + f * (0.24144276F + f * (0.05201146F + f * 0.01353417F)));
  return reinterpret_cast<Vec>(
      _mm512_maskz_scalef_ps(kAll, reinterpret_cast<__m512>(power), reinterpret_cast<__m512>(x)));
}

// Powers of two below this are taken for 0: on the way to results they would become numbers so
// small that processors take a hundred cycles for each.
constexpr float kLeastPower = -120.0F;

// 2^x / (1 + 2^x).
MXPLAN_INLINE Vec ShortLogisticOfTwo(Vec x) {
  constexpr float kMost = 126.0F;  // so that the power is finite
  Vec within = x > kMost ? Broadcast(kMost) : x;
  within = within < kLeastPower ? Broadcast(kLeastPower) : within;
  const Vec power = ShortPowerOfTwo(within);
  const Vec logistic = power * ShortReciprocal(1.0F + power);
  return x < kLeastPower ? Vec{} : logistic;
}

// The normal distribution up to x: its smaller tail is t 2^(p(t) - x^2 log2(e) / 2), where
// t = 1 / (1 + 0.35 |x|) and p is the polynomial of least error (9.4e-6) up to where tails are
// none.
MXPLAN_INLINE Vec ShortNormalUpTo(Vec x) {
  constexpr float kHalfPower = 0.72134752F;  // log2(e) / 2
  const Vec size = x < 0 ? -x : x;
  const Vec t = ShortReciprocal(1.0F + 0.35F * size);
  const Vec p = -2.8422031F +
                t * (1.47362206F +
                     t * (0.34815293F + t * (0.7375111F + t * (-1.05010782F + t * 0.33303426F))));
  const Vec power = p - kHalfPower * size * size;
  const Vec within = power < kLeastPower ? Broadcast(kLeastPower) : power;
  const Vec tail = power < kLeastPower ? Vec{} : t * ShortPowerOfTwo(within);
  return x < 0 ? tail : 1.0F - tail;
}

// What Apply gives for a code that is known, as exact as results of type Dst are.
template <PostOp::Code kCode, typename Dst>
MXPLAN_INLINE Vec ApplyFor(const PostOp& op, Vec x, Vec other) {
  constexpr float kPowers = 1.44269504F;  // log2(e)
  constexpr bool kIsShort = sizeof(Dst) == sizeof(uint16_t);
  if constexpr (kIsShort && kCode == PostOp::Code::kLogistic) {
    return ShortLogisticOfTwo(kPowers * x);
  } else if constexpr (kIsShort && kCode == PostOp::Code::kSwish) {
    return x * ShortLogisticOfTwo(kPowers * op.alpha * x);
  } else if constexpr (kIsShort && kCode == PostOp::Code::kGeluTanh) {
    return x * ShortLogisticOfTwo(kPowers * 1.59576912F * (x + 0.044715F * x * x * x));
  } else if constexpr (kIsShort && kCode == PostOp::Code::kGeluErf) {
    return x * ShortNormalUpTo(x);
  }
  PostOp known = op;
  known.code = kCode;
  return Apply(known, x, other);
}

// A post-op on the vectors of some pixels, as exact as results of type Dst are; operand(pixel, v)
// loads what it reads.  One question for all of them tells the post-op.
template <typename Dst, int kVectors, typename Operand>
MXPLAN_INLINE void ApplyToSums(const PostOp& op, Vec (*sums)[kVectors], int64_t pixels,
                               const Operand& operand) {
  WithCode(op.code, [&](auto code) __attribute__((always_inline)) {
    for (int64_t p = 0; p < pixels; ++p) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        Vec other{};
        if constexpr (post_ops::HasOperand(code())) other = operand(p, v);
        sums[p][v] = ApplyFor<code(), Dst>(op, sums[p][v], other);
      }
    }
  });
}

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_SHORT_FUNCTIONS_IMPL_H_
