// Means of channels over pixels; included once for each instruction set.
//
// A channel's sum is made in the same order whatever its neighbours and however many threads.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_MEANS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_MEANS_IMPL_H_

#include <algorithm>
#include <cstdint>

#include "onednn/squeeze_excite/kernels.h"
#include "onednn/squeeze_excite/runs_impl.h"

namespace mxplan::squeeze_excite {
namespace {

constexpr int64_t kAtOnce = 32;  // pixels of a sum of its own at least
constexpr int64_t kChains = 4;   // sums that do not wait for each other

// Pixels of a sum of its own: as many as there are such sums, so that long ones stay accurate.
inline int64_t AtOnce(int64_t pixels) {
  int64_t count = kAtOnce;
  while (count * count < pixels) count += kAtOnce;
  return count;
}

// The sum of some pixels of each lane; `read` gives the vector of a pixel.
template <typename Read>
MXPLAN_INLINE Vec SumOf(int64_t begin, int64_t end, const Read& read) {
  Vec parts[kChains] = {};
  int64_t pixel = begin;
  for (; pixel + kChains <= end; pixel += kChains) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kChains; ++i) parts[i] += read(pixel + i);
  }
  for (int64_t i = 0; pixel < end; ++pixel, ++i) parts[i] += read(pixel);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// The same for several vectors of channels, each summed in the same order.
template <int64_t kVectors, typename Type>
MXPLAN_INLINE void AddSums(const Type* src, int64_t begin, int64_t end, int64_t stride,
                           float* totals) {
  Vec parts[kChains][kVectors] = {};
  int64_t pixel = begin;
  for (; pixel + kChains <= end; pixel += kChains) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kChains; ++i) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        parts[i][v] += LoadAll(src + (pixel + i) * stride + v * kLanes);
      }
    }
  }
  for (int64_t i = 0; pixel < end; ++pixel, ++i) {
    for (int64_t v = 0; v < kVectors; ++v) {
      parts[i][v] += LoadAll(src + pixel * stride + v * kLanes);
    }
  }
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    float* total = totals + v * kLanes;
    Store(total, Load(total) + ((parts[0][v] + parts[1][v]) + (parts[2][v] + parts[3][v])));
  }
}

// Some pixels of all channels of a run, which stand side by side, before the next ones.
template <typename Type>
void MeansSideBySide(const Image& image, const Type* src, int64_t begin, int64_t end,
                     float* means) {
  const auto pixels = static_cast<float>(image.pixels);
  const int64_t stride = image.pixel_stride, at_once = AtOnce(image.pixels);
  std::fill(means + begin, means + end, 0.0F);
  ForRuns(image, begin, end, [&](int64_t place, int64_t channel, int64_t count) {
    for (int64_t first = 0; first < image.pixels; first += at_once) {
      const int64_t last = std::min(image.pixels, first + at_once);
      ForVectors(count, [&](int64_t at, auto vectors, auto some) {
        constexpr int64_t kVectors = decltype(vectors)::value;
        const Type* from = src + place + at;
        float* to = means + channel + at;
        if constexpr (kVectors > 1) {
          AddSums<kVectors>(from, first, last, stride, to);
        } else {
          auto read = [&](int64_t pixel) { return some.From(from + pixel * stride); };
          some.To(to, some.From(to) + SumOf(first, last, read));
        }
      });
    }
  });
  for (int64_t channel = begin; channel < end; ++channel) means[channel] /= pixels;
}

template <typename Type>
void MeansAlone(const Image& image, const Type* src, int64_t begin, int64_t end, float* means) {
  const int64_t vectors = image.pixels / kLanes, rest = image.pixels % kLanes;
  const int64_t at_once = AtOnce(vectors);
  for (int64_t channel = begin; channel < end; ++channel) {
    const Type* from = src + channel * image.group_stride;
    Vec sum{};
    for (int64_t first = 0; first < vectors; first += at_once) {
      sum += SumOf(first, std::min(vectors, first + at_once),
                   [&](int64_t at) { return LoadAll(from + at * kLanes); });
    }
    if (rest > 0) sum += LoadFirst(from + vectors * kLanes, rest);
    means[channel] = Across(sum) / static_cast<float>(image.pixels);
  }
}

template <typename Type>
void Means(const Image& image, const void* src, int64_t begin, int64_t end, float* means) {
  auto* work = image.together == 1 ? MeansAlone<Type> : MeansSideBySide<Type>;
  work(image, As<Type>(src), begin, end, means);
}

}  // namespace
}  // namespace mxplan::squeeze_excite

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_MEANS_IMPL_H_
