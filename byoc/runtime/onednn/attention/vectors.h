// Vectors of MXPLAN_LANES floats, and what attention's kernels do with them across lanes; included
// once for each instruction set, by the kernels.  Everything is in an unnamed namespace.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_VECTORS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_VECTORS_H_

#include <cstdint>
#include <limits>
#include <utility>

#include "onednn/vectors/lanes_impl.h"

namespace mxplan::attention {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

MXPLAN_INLINE Vec Max(Vec a, Vec b) { return a > b ? a : b; }  // b where a is NaN

// e to the power of x <= 0, within 1e-7 of itself; 0 below the normal numbers, NaN of NaN.
MXPLAN_INLINE Vec Exp(Vec x) {
  constexpr float kLeast = -87.33F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: a sum with it has no fraction
  Vec shifted = x * 1.44269504F + kRound;
  Vec whole = shifted - kRound;
  Vec r = x - whole * 0.693359375F;
  r = r - whole * -2.12194440e-4F;
  Vec p = r * 1.38145417e-3F + 8.36874545e-3F;
  p = p * r + 4.16683890e-2F;
  p = p * r + 1.66665211e-1F;
  p = p * r + 4.99999940e-1F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  Ints power = (reinterpret_cast<Ints>(shifted) + 127) << 23;
  Vec result = p * reinterpret_cast<Vec>(power);
  return x < kLeast ? Vec{} : result;
}

MXPLAN_INLINE float Largest(Vec v) {
  float largest = -kInfinity;
  for (int64_t i = 0; i < kLanes; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

MXPLAN_INLINE float Sum(Vec v) {
  float sum = 0;
  for (int64_t i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

}  // namespace
}  // namespace mxplan::attention

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_VECTORS_H_
