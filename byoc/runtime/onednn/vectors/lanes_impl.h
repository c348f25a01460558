// Vectors of MXPLAN_LANES floats; included once for each instruction set, by the kernels of our
// own.  Everything is in an unnamed namespace: no inline function of one set may end up in code of
// another.  Standard headers come before the instruction set is named.  With MXPLAN_MASKS parts of
// a vector go by AVX-512's masks.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_LANES_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_LANES_IMPL_H_

#include <cstdint>
#include <utility>
#ifdef MXPLAN_MASKS
#include <immintrin.h>
#endif

namespace mxplan {
namespace {

constexpr int64_t kLanes = MXPLAN_LANES;
using Vec = float __attribute__((vector_size(4 * MXPLAN_LANES)));
using Ints = int32_t __attribute__((vector_size(4 * MXPLAN_LANES)));
using Unaligned = float __attribute__((vector_size(4 * MXPLAN_LANES), aligned(4), may_alias));

#define MXPLAN_INLINE inline __attribute__((always_inline))

// Subtracting zero is nothing to the compiler; adding it would make a positive zero of -0.
MXPLAN_INLINE Vec Broadcast(float number) { return number - Vec{}; }
MXPLAN_INLINE Vec Load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
MXPLAN_INLINE void Store(float* to, Vec vec) { *reinterpret_cast<Unaligned*>(to) = vec; }
// A word in each lane, from anywhere.
MXPLAN_INLINE Ints LoadWords(const void* from) {
  Ints words;
  __builtin_memcpy(&words, from, sizeof(words));
  return words;
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

// The sum of all lanes, halves first.
MXPLAN_INLINE float Across(Vec vec) {
  float lanes[kLanes];
  Store(lanes, vec);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// The first `count` lanes, and zeros in the rest.
MXPLAN_INLINE Vec LoadSome(const float* from, int64_t count) {
#ifdef MXPLAN_MASKS
  return reinterpret_cast<Vec>(
      _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from));
#else
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return Load(lanes);
#endif
}

MXPLAN_INLINE void StoreSome(float* to, Vec x, int64_t count) {
#ifdef MXPLAN_MASKS
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), reinterpret_cast<__m512>(x));
#else
  float lanes[kLanes];
  Store(lanes, x);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
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

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_LANES_IMPL_H_
