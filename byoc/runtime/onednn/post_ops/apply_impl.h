// Post-ops on vectors of MXPLAN_LANES floats; included once for each instruction set, as
// lanes_impl.h is.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_APPLY_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_APPLY_IMPL_H_

#include <type_traits>

#include "onednn/post_ops/codes.h"
#include "onednn/vectors/lanes_impl.h"

namespace mxplan {
namespace {

using post_ops::PostOp;

MXPLAN_INLINE Vec Min(Vec a, Vec b) { return a < b ? a : b; }
MXPLAN_INLINE Vec Max(Vec a, Vec b) { return a > b ? a : b; }

// e^x for x up to 88: 2^n e^f with |f| <= log(2) / 2, and 2^n in halves, since n goes down to
// where numbers end.  NaN stays NaN.
MXPLAN_INLINE Vec Exp(Vec x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: leaves a number's integer in the low bits
  x = x > 88.0F ? Broadcast(88.0F) : x;
  x = x < -105.0F ? Broadcast(-105.0F) : x;
  Vec shifted = x * 1.44269504F + kRound;
  Vec n = shifted - kRound;
  Vec f = x - n * 0.693359375F + n * 2.12194440e-4F;
  // By pairs of terms (G. Estrin, 1960), which wait less for each other than one after another.
  const Vec square = f * f;
  const Vec low_terms = 1.6666665459e-1F * f + 5.0000001201e-1F;
  const Vec middle = 8.3334519073e-3F * f + 4.1665795894e-2F;
  const Vec high_terms = 1.9875691500e-4F * f + 1.3981999507e-3F;
  const Vec sum = (low_terms + square * (middle + square * high_terms)) * square + (f + 1.0F);
  Ints power = reinterpret_cast<Ints>(shifted) - 0x4B400000, half = power >> 1;
  Ints low = (half + 127) << 23, high = (power - half + 127) << 23;
  return sum * reinterpret_cast<Vec>(low) * reinterpret_cast<Vec>(high);
}

// 2^x for x up to 0: the whole part of x is added to the exponent of 2^f, where |f| <= 1 / 2. There
// is none for 2^-127, which becomes 0 as all below it do.  NaN may become a number.
MXPLAN_INLINE Vec PowerOfTwo(Vec x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: leaves a number's integer in the low bits
  x = x < -127.0F ? Broadcast(-127.0F) : x;
  const Vec shifted = x + kRound, f = x - (shifted - kRound);
  // Of Taylor, by pairs of terms as in Exp.
  const Vec square = f * f;
  const Vec low_terms = 6.93147181e-1F * f + 1.0F;
  const Vec middle = 5.55041087e-2F * f + 2.40226507e-1F;
  const Vec high_terms = 1.33335581e-3F * f + 9.61812911e-3F;
  const Vec sum = low_terms + square * (middle + square * (high_terms + square * 1.54035304e-4F));
  return reinterpret_cast<Vec>((reinterpret_cast<Ints>(shifted) << 23) +
                               reinterpret_cast<Ints>(sum));
}

// By the power that does not overflow, so that small results stay accurate.
MXPLAN_INLINE Vec Logistic(Vec x) {
  Vec power = Exp(x < 0 ? x : -x);
  return (x < 0 ? power : Broadcast(1.0F)) / (1.0F + power);
}

// Small arguments by a polynomial: the quotient would cancel.
MXPLAN_INLINE Vec Tanh(Vec x) {
  Vec square = x * x;
  Vec sum = -5.70498872745e-3F * square + 2.06390887954e-2F;
  sum = sum * square - 5.37397155531e-2F;
  sum = sum * square + 1.33314422036e-1F;
  sum = sum * square - 3.33332819422e-1F;
  Vec small = x + x * square * sum;
  Vec large = 1.0F - 2.0F / (Exp(2.0F * x) + 1.0F);
  return square < 0.390625F ? small : large;
}

// The normal distribution up to x.  Its smaller tail by W. Press et al., Numerical Recipes, erfcc:
// relative errors below 1.2e-7, but for rounding the power of e, which is here one of 2.
MXPLAN_INLINE Vec NormalUpTo(Vec x) {
  constexpr float kPowers = 1.44269504F;  // log2(e)
  const Vec size = x < 0 ? -x : x;
  const Vec t = 1.0F / (1.0F + 0.353553391F * size);
  // Pairs of terms, as in Exp.
  const Vec square = t * t, fourth = square * square;
  const Vec first =
      1.00002368F * kPowers * t - (1.26551223F * kPowers + 1.0F) - 0.5F * kPowers * size * size;
  const Vec second = 0.09678418F * kPowers * t + 0.37409196F * kPowers;
  const Vec third = 0.27886807F * kPowers * t - 0.18628806F * kPowers;
  const Vec last = 1.48851587F * kPowers * t - 1.13520398F * kPowers;
  const Vec end = 0.17087277F * kPowers * t - 0.82215223F * kPowers;
  const Vec power = first + square * second + fourth * (third + square * (last + square * end));
  const Vec tail = t * PowerOfTwo(power);
  return x < 0 ? tail : 1.0F - tail;
}

MXPLAN_INLINE Vec HardSigmoid(const PostOp& op, Vec x) {
  return Min(Max(op.alpha * x + op.beta, Vec{}), Broadcast(1.0F));
}

// e^x - 1 below 0: near it by a polynomial of Taylor's, where the difference would cancel.
MXPLAN_INLINE Vec Elu(const PostOp& op, Vec x) {
  const Vec square = x * x;
  const Vec terms = (0.5F + 1.66666667e-1F * x) + square * (4.16666667e-2F + 8.33333333e-3F * x);
  const Vec near = x + square * (terms + square * square * 1.38888889e-3F);
  const Vec below = x > -0.25F ? near : Exp(x) - 1.0F;
  return x < 0 ? op.alpha * below : x;
}

// To the nearest integer, a half to the even one; large numbers have no fraction.
MXPLAN_INLINE Vec Round(Vec x) {
  constexpr float kShift = 12582912.0F, kWhole = 4194304.0F;  // 1.5 * 2^23, 2^22
  const Vec rounded = x + kShift - kShift;
  return x > -kWhole && x < kWhole ? rounded : x;
}

MXPLAN_INLINE Vec Apply(const PostOp& op, Vec x, Vec other) {
  switch (op.code) {
    case PostOp::Code::kRelu:
      return x < 0 ? Vec{} : x;
    case PostOp::Code::kLeakyRelu:
      return x < 0 ? op.alpha * x : x;
    case PostOp::Code::kClip:
      return Min(Max(x, Broadcast(op.alpha)), Broadcast(op.beta));
    case PostOp::Code::kRound:
      return Round(x);
    case PostOp::Code::kLinear:
      return op.alpha * x + op.beta;
    case PostOp::Code::kSum:
      return x + op.alpha * other;
    case PostOp::Code::kAdd:
      return x + other;
    case PostOp::Code::kSub:
      return x - other;
    case PostOp::Code::kMul:
      return x * other;
    case PostOp::Code::kDiv:
      return x / other;
    case PostOp::Code::kMin:
      return Min(x, other);
    case PostOp::Code::kMax:
      return Max(x, other);
    case PostOp::Code::kLogistic:
      return Logistic(x);
    case PostOp::Code::kSwish:
      return x * Logistic(op.alpha * x);
    case PostOp::Code::kTanh:
      return Tanh(x);
    case PostOp::Code::kHardSigmoid:
      return HardSigmoid(op, x);
    case PostOp::Code::kHardSwish:
      return x * HardSigmoid(op, x);
    case PostOp::Code::kGeluTanh:
      return x * Logistic(1.59576912F * (x + 0.044715F * x * x * x));
    case PostOp::Code::kGeluErf:
      return x * NormalUpTo(x);
    case PostOp::Code::kElu:
      return Elu(op, x);
  }
  return x;
}

// Calls run(code) with the code of a post-op as a constant.
template <typename Run>
MXPLAN_INLINE void WithCode(PostOp::Code code, const Run& run) {
  using Code = PostOp::Code;
  switch (code) {
    case Code::kRelu:
      return run(std::integral_constant<Code, Code::kRelu>());
    case Code::kLeakyRelu:
      return run(std::integral_constant<Code, Code::kLeakyRelu>());
    case Code::kClip:
      return run(std::integral_constant<Code, Code::kClip>());
    case Code::kRound:
      return run(std::integral_constant<Code, Code::kRound>());
    case Code::kLinear:
      return run(std::integral_constant<Code, Code::kLinear>());
    case Code::kSum:
      return run(std::integral_constant<Code, Code::kSum>());
    case Code::kAdd:
      return run(std::integral_constant<Code, Code::kAdd>());
    case Code::kSub:
      return run(std::integral_constant<Code, Code::kSub>());
    case Code::kMul:
      return run(std::integral_constant<Code, Code::kMul>());
    case Code::kDiv:
      return run(std::integral_constant<Code, Code::kDiv>());
    case Code::kMin:
      return run(std::integral_constant<Code, Code::kMin>());
    case Code::kMax:
      return run(std::integral_constant<Code, Code::kMax>());
    case Code::kLogistic:
      return run(std::integral_constant<Code, Code::kLogistic>());
    case Code::kSwish:
      return run(std::integral_constant<Code, Code::kSwish>());
    case Code::kTanh:
      return run(std::integral_constant<Code, Code::kTanh>());
    case Code::kHardSigmoid:
      return run(std::integral_constant<Code, Code::kHardSigmoid>());
    case Code::kHardSwish:
      return run(std::integral_constant<Code, Code::kHardSwish>());
    case Code::kGeluTanh:
      return run(std::integral_constant<Code, Code::kGeluTanh>());
    case Code::kGeluErf:
      return run(std::integral_constant<Code, Code::kGeluErf>());
    case Code::kElu:
      return run(std::integral_constant<Code, Code::kElu>());
  }
}

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_APPLY_IMPL_H_
