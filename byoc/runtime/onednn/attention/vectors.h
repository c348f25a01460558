// Vectors of MXPLAN_LANES floats, and what attention's kernels do with them across lanes; included
// once for each instruction set, by the kernels.  Everything is in an unnamed namespace.
#include <cstdint>
#include <limits>
#include <utility>

namespace mxplan::attention {
namespace {

constexpr int64_t kLanes = MXPLAN_LANES;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Vec = float __attribute__((vector_size(4 * MXPLAN_LANES)));
using Ints = int32_t __attribute__((vector_size(4 * MXPLAN_LANES)));
using Unaligned = float __attribute__((vector_size(4 * MXPLAN_LANES), aligned(4), may_alias));

#define MXPLAN_INLINE inline __attribute__((always_inline))

MXPLAN_INLINE Vec Load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
MXPLAN_INLINE void Store(float* to, Vec vec) { *reinterpret_cast<Unaligned*>(to) = vec; }
MXPLAN_INLINE Vec All(float number) { return Vec{} + number; }
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

template <int64_t kHalf, int64_t kSecond, int64_t... kLane>
MXPLAN_INLINE Vec Crossed(Vec a, Vec b, std::integer_sequence<int64_t, kLane...>) {
  // Lanes whose bit `kHalf` is 0 are of a, the others of b; kSecond of them 1 moves to their mates.
  return __builtin_shufflevector(a, b,
                                 ((kLane & kHalf) ? kLanes + (kLane ^ (kSecond & 1 ? kHalf : 0))
                                                  : (kLane ^ (kSecond & 2 ? kHalf : 0)))...);
}
template <int64_t kHalf, int64_t kSecond>
MXPLAN_INLINE Vec Cross(Vec a, Vec b) {
  return Crossed<kHalf, kSecond>(a, b, std::make_integer_sequence<int64_t, kLanes>());
}

// The sums of kLanes vectors, that of v[i] in lane i.
template <int64_t kHalf = kLanes / 2>
MXPLAN_INLINE Vec Sums(Vec* v) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < kHalf; ++i) {
    v[i] = Cross<kHalf, 0>(v[i], v[i + kHalf]) + Cross<kHalf, 3>(v[i], v[i + kHalf]);
  }
  if constexpr (kHalf > 1) {
    return Sums<kHalf / 2>(v);
  } else {
    return v[0];
  }
}

// Lane j of v[i] and lane i of v[j] change places.
template <int64_t kHalf = kLanes / 2>
MXPLAN_INLINE void Transpose(Vec* v) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) {
    if (i & kHalf) continue;
    Vec low = Cross<kHalf, 1>(v[i], v[i + kHalf]);
    v[i + kHalf] = Cross<kHalf, 2>(v[i], v[i + kHalf]);
    v[i] = low;
  }
  if constexpr (kHalf > 1) Transpose<kHalf / 2>(v);
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
