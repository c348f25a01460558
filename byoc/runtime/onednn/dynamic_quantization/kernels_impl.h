// The kernels for vectors of MXPLAN_LANES floats; included once for each instruction set.
// Everything but `Get` is in an unnamed namespace.
#include <cmath>
#include <cstring>

#include "onednn/dynamic_quantization/kernels.h"

namespace mxplan::dynamic_quantization {
namespace {

constexpr int64_t kLanes = MXPLAN_LANES;
constexpr int64_t kVectors = 4;  // at once, so that no result waits for the one before
using Vec = float __attribute__((vector_size(4 * MXPLAN_LANES)));
using Ints = int32_t __attribute__((vector_size(4 * MXPLAN_LANES)));
using Bytes = uint8_t __attribute__((vector_size(MXPLAN_LANES)));
using Unaligned = float __attribute__((vector_size(4 * MXPLAN_LANES), aligned(4), may_alias));

inline __attribute__((always_inline)) Vec Load(const float* from) {
  return *reinterpret_cast<const Unaligned*>(from);
}

// NaN stays out of a range.
Range RangeOf(const float* from, int64_t count) {
  Range range;
  int64_t at = 0;
  if (count >= kLanes) {
    Vec least[kVectors] = {}, largest[kVectors] = {};
    for (; at + kVectors * kLanes <= count; at += kVectors * kLanes) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < kVectors; ++i) {
        Vec x = Load(from + at + i * kLanes);
        least[i] = x < least[i] ? x : least[i];
        largest[i] = x > largest[i] ? x : largest[i];
      }
    }
    for (const Vec& vector : least) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        if (vector[lane] < range.least) range.least = vector[lane];
      }
    }
    for (const Vec& vector : largest) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        if (vector[lane] > range.largest) range.largest = vector[lane];
      }
    }
  }
  for (; at < count; ++at) {
    if (from[at] < range.least) range.least = from[at];
    if (from[at] > range.largest) range.largest = from[at];
  }
  return range;
}

// A sum with 1.5 * 2^23 has no fraction, which rounds to the nearest, a tie to the even one.
constexpr float kRound = 12582912.0F;
constexpr int32_t kRoundBits = 0x4B400000;

void Convert(const float* from, int64_t count, float scale, int32_t zero, uint8_t* to) {
  const auto least = static_cast<float>(-zero), largest = static_cast<float>(255 - zero);
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    Vec steps = Load(from + at) / scale;
    steps = steps > least ? steps : Vec{} + least;  // what is no number, too
    steps = steps < largest ? steps : Vec{} + largest;
    Vec shifted = steps + kRound;
    Ints whole;
    std::memcpy(&whole, &shifted, sizeof(whole));
    Bytes bytes = __builtin_convertvector(whole - kRoundBits + zero, Bytes);
    std::memcpy(to + at, &bytes, sizeof(bytes));
  }
  for (; at < count; ++at) {
    float steps = from[at] / scale;
    steps = steps > least ? steps : least;
    steps = steps < largest ? steps : largest;
    to[at] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyintf(steps)) + zero);
  }
}

Kernels Get(const char* name) { return {name, RangeOf, Convert}; }

}  // namespace
}  // namespace mxplan::dynamic_quantization
