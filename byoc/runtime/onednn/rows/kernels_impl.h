// The kernels for vectors of MXPLAN_LANES floats; included once for each instruction set.
// Everything but `Get` is in an unnamed namespace.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "onednn/post_ops/apply_impl.h"
#include "onednn/rows/kernels.h"
#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan::rows {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kAddedUp = 32 * kLanes;  // numbers of a row, before their sum joins its sum
constexpr int64_t kVectors = 4;            // at once, so that no sum waits for the one before

using HalfVec = float __attribute__((vector_size(2 * MXPLAN_LANES)));
using Lanes = std::make_integer_sequence<int64_t, kLanes>;

template <int64_t... kLane>
MXPLAN_INLINE Vec Doubled(HalfVec vec, std::integer_sequence<int64_t, kLane...>) {
  return __builtin_shufflevector(vec, vec, (kLane / 2)...);
}

// A place in a row.
template <bool kWhole>
struct Place {
  int64_t at;
  Some<kWhole> some;
  template <typename Type>
  MXPLAN_INLINE Vec From(const Type* row) const {
    return some.From(row + at);
  }
  // A number for each pair, twice.
  MXPLAN_INLINE Vec Twice(const float* row) const {
    HalfVec numbers{};
    const int64_t pairs = kWhole ? kLanes / 2 : some.count / 2;
    std::memcpy(&numbers, row + at / 2, static_cast<size_t>(pairs) * sizeof(float));
    return Doubled(numbers, Lanes());
  }
  template <typename Type>
  MXPLAN_INLINE void To(Type* row, Vec vec) const {
    some.To(row + at, vec);
  }
};

template <typename Work>
MXPLAN_INLINE void ForVectors(int64_t count, const Work& work) {
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) work(Place<true>{at, {kLanes}});
  if (at < count) work(Place<false>{at, {count - at}});
}

template <typename From, typename To>
void Normalize(const Normalization& of, const void* src, void* dst) {
  const auto* from = static_cast<const From*>(src);
  auto* to = static_cast<To*>(dst);
  Vec sums[kVectors] = {};
  int64_t at = 0;
  for (; at + kVectors * kLanes <= of.count; at += kVectors * kLanes) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kVectors; ++i) {
      Vec x = LoadAll(from + at + i * kLanes);
      sums[i] += x * x;
    }
  }
  ForVectors(of.count - at, [&](const auto& place) {
    Vec x = place.From(from + at);
    sums[0] += x * x;
  });
  const float squares = Across((sums[0] + sums[1]) + (sums[2] + sums[3]));
  const Vec root = Broadcast(1.0F / std::sqrt(squares / static_cast<float>(of.count) + of.epsilon));
  if (of.scale == nullptr) {
    ForVectors(of.count, [&](const auto& place) { place.To(to, place.From(from) * root); });
    return;
  }
  ForVectors(of.count, [&](const auto& place) {
    place.To(to, place.From(from) * root * place.From(of.scale));
  });
}

// Halves of a row are pairs; `other` is where tables have the numbers of the second ones.
template <typename Type>
MXPLAN_INLINE void RotateHalves(const Type* src, const float* cosines, const float* sines,
                                int64_t half, int64_t other, Type* dst) {
  ForVectors(half, [&](const auto& place) {
    const Vec a = place.From(src), b = place.From(src + half);
    place.To(dst, a * place.From(cosines) - b * place.From(sines));
    place.To(dst + half, b * place.From(cosines + other) + a * place.From(sines + other));
  });
}

template <int64_t... kLane>
MXPLAN_INLINE Vec Swapped(Vec vec, std::integer_sequence<int64_t, kLane...>) {
  return __builtin_shufflevector(vec, vec, (kLane ^ 1)...);
}
template <int64_t... kLane>
MXPLAN_INLINE Vec Signs(std::integer_sequence<int64_t, kLane...>) {
  return Vec{(kLane & 1 ? 1.0F : -1.0F)...};
}
// Neighbours are pairs.
template <typename Type>
MXPLAN_INLINE void RotatePairs(const Type* src, const float* cosines, const float* sines,
                               int64_t width, bool whole_tables, Type* dst) {
  const Vec signs = Signs(Lanes());
  auto rotated = [&](Vec x, Vec cosine, Vec sine) {
    return x * cosine + Swapped(x, Lanes()) * (sine * signs);
  };
  if (whole_tables) {
    ForVectors(width, [&](const auto& place) {
      place.To(dst, rotated(place.From(src), place.From(cosines), place.From(sines)));
    });
    return;
  }
  ForVectors(width, [&](const auto& place) {
    place.To(dst, rotated(place.From(src), place.Twice(cosines), place.Twice(sines)));
  });
}

// The first `count` lanes, and -infinity behind them.
template <int64_t... kLane>
MXPLAN_INLINE Vec OrNothing(Vec vec, int64_t count, std::integer_sequence<int64_t, kLane...>) {
  const Ints place = {kLane...};
  return place < static_cast<int32_t>(count) ? vec : Broadcast(-kInfinity);
}

// Exponents are those of distances to the largest number, which are all there is near it: the sum
// is 1 or more, and its logarithm as exact as the sum.
template <typename From, typename To>
void LogSoftmax(int64_t count, const void* src, void* dst) {
  const auto* from = static_cast<const From*>(src);
  auto* to = static_cast<To*>(dst);
  auto numbers = [&](const auto& place) {
    return OrNothing(place.From(from), place.some.count, Lanes());
  };
  Vec most = Broadcast(-kInfinity);
  ForVectors(count, [&](const auto& place) { most = Max(numbers(place), most); });
  float largest = most[0];
  for (int64_t i = 1; i < kLanes; ++i) largest = std::max(largest, most[i]);
  const Vec base = Broadcast(largest);
  Vec sums{}, some{};  // of the whole row, and of the numbers since it was last added to
  ForVectors(count, [&](const auto& place) {
    some += Exp(numbers(place) - base);
    if (place.at % kAddedUp == 0) {
      sums += some;
      some = Vec{};
    }
  });
  const Vec logarithm = Broadcast(std::log(Across(sums + some)));
  ForVectors(count,
             [&](const auto& place) { place.To(to, (place.From(from) - base) - logarithm); });
}

template <typename Type>
void Rotate(const Rotation& of, const void* src, const float* cosines, const float* sines,
            void* dst) {
  const auto* from = static_cast<const Type*>(src);
  auto* to = static_cast<Type*>(dst);
  if (of.interleaved) {
    RotatePairs(from, cosines, sines, of.width, of.whole_tables, to);
  } else {
    const int64_t half = of.width / 2;
    RotateHalves(from, cosines, sines, half, of.whole_tables ? half : 0, to);
  }
  std::copy(from + of.width, from + of.count, to + of.width);
}

Kernels Get(const char* normalization, const char* rotation, const char* log_softmax) {
  return {normalization,
          rotation,
          log_softmax,
          {{Normalize<float, float>, Normalize<float, Short>},
           {Normalize<Short, float>, Normalize<Short, Short>}},
          {Rotate<float>, Rotate<Short>},
          {{LogSoftmax<float, float>, LogSoftmax<float, Short>},
           {LogSoftmax<Short, float>, LogSoftmax<Short, Short>}}};
}

}  // namespace
}  // namespace mxplan::rows
