// The kernels of squeeze_excite/kernels.h for vectors of MXPLAN_LANES floats; included once for
// each instruction set.  Everything but `Get` is in an unnamed namespace.
//
// A channel's sum is made in the same order whatever its neighbours and however many threads.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "onednn/post_ops/apply_impl.h"
#include "onednn/squeeze_excite/kernels.h"
#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan::squeeze_excite {
namespace {

constexpr int64_t kAtOnce = 32;  // pixels of a sum of its own at least
constexpr int64_t kChains = 4;   // sums that do not wait for each other
constexpr int kSamples = 4;      // that share what is read of weights

template <typename Type>
const Type* As(const void* pointer) {
  return static_cast<const Type*>(pointer);
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

// Pixels of a sum of its own: as many as there are such sums, so that long ones stay accurate.
inline int64_t AtOnce(int64_t pixels) {
  int64_t count = kAtOnce;
  while (count * count < pixels) count += kAtOnce;
  return count;
}

// A vector of channels, or at the end of a run a part of one.
template <bool kWhole>
struct Some {
  int64_t count;
  template <typename Type>
  MXPLAN_INLINE Vec From(const Type* at) const {
    if constexpr (kWhole) {
      return LoadAll(at);
    } else {
      return LoadFirst(at, count);
    }
  }
  template <typename Type>
  MXPLAN_INLINE void To(Type* at, Vec vec) const {
    if constexpr (kWhole) {
      StoreAll(at, vec);
    } else {
      StoreFirst(at, count, vec);
    }
  }
};

// Calls work(place, vectors, some) along `count` numbers: `vectors`, a constant, of them at once.
template <typename Work>
MXPLAN_INLINE void ForVectors(int64_t count, const Work& work) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= count; at += 4 * kLanes) {
    work(at, std::integral_constant<int64_t, 4>(), Some<true>{kLanes});
  }
  for (; at + kLanes <= count; at += kLanes) {
    work(at, std::integral_constant<int64_t, 1>(), Some<true>{kLanes});
  }
  if (at < count) work(at, std::integral_constant<int64_t, 1>(), Some<false>{count - at});
}

// Calls work(place, channel, count) for each run of channels that stand side by side.
template <typename Work>
MXPLAN_INLINE void ForRuns(const Image& image, int64_t begin, int64_t end, const Work& work) {
  int64_t channel = begin;
  while (channel < end) {
    const int64_t group = channel / image.together, within = channel % image.together;
    const int64_t count = std::min(image.together - within, end - channel);
    work(group * image.group_stride + within, channel, count);
    channel += count;
  }
}

// --- means -----------------------------------------------------------------------------------

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

// --- gates -----------------------------------------------------------------------------------

inline void Apply(const post_ops::PostOp& function, int64_t begin, int64_t end, float* numbers) {
  ForVectors(end - begin, [&](int64_t at, auto vectors, auto some) {
    constexpr int64_t kVectors = decltype(vectors)::value;
    for (int64_t v = 0; v < kVectors; ++v) {
      float* place = numbers + begin + at + v * kLanes;
      some.To(place, mxplan::Apply(function, some.From(place), Vec{}));
    }
  });
}

// `kCount` samples from one reading of the weights.
template <typename Type, int kCount>
MXPLAN_INLINE void RowsOf(const Product& of, const float* src, int64_t begin, int64_t end,
                          float* dst) {
  constexpr int64_t kParts = kCount == 1 ? 4 : 1;
  for (int64_t row = begin; row < end; ++row) {
    const Type* weights = As<Type>(of.weights) + row * of.inputs;
    Vec sums[kCount][kParts] = {};
    int64_t at = 0;
    for (; at + kParts * kLanes <= of.inputs; at += kParts * kLanes) {
#pragma GCC unroll 4
      for (int64_t part = 0; part < kParts; ++part) {
        const Vec factors = LoadAll(weights + at + part * kLanes);
#pragma GCC unroll 4
        for (int s = 0; s < kCount; ++s) {
          sums[s][part] += factors * Load(src + s * of.src_stride + at + part * kLanes);
        }
      }
    }
    for (; at + kLanes <= of.inputs; at += kLanes) {
      const Vec factors = LoadAll(weights + at);
      for (int s = 0; s < kCount; ++s) {
        sums[s][0] += factors * Load(src + s * of.src_stride + at);
      }
    }
    if (at < of.inputs) {
      const Vec factors = LoadFirst(weights + at, of.inputs - at);
      for (int s = 0; s < kCount; ++s) {
        sums[s][0] += factors * LoadFirst(src + s * of.src_stride + at, of.inputs - at);
      }
    }
    for (int s = 0; s < kCount; ++s) {
      Vec sum = sums[s][0];
      for (int64_t part = 1; part < kParts; ++part) sum += sums[s][part];
      dst[s * of.dst_stride + row] = Across(sum) + (of.bias ? of.bias[row] : 0.0F);
    }
  }
}

// Weights are read as they stand, one row after the other; sums are in the nearest cache.
template <typename Type, int kCount>
MXPLAN_INLINE void ColumnsOf(const Product& of, const float* src, int64_t begin, int64_t end,
                             float* dst) {
  for (int s = 0; s < kCount; ++s) {
    float* sums = dst + s * of.dst_stride;
    if (of.bias != nullptr) {
      std::copy(of.bias + begin, of.bias + end, sums + begin);
    } else {
      std::fill(sums + begin, sums + end, 0.0F);
    }
  }
  for (int64_t input = 0; input < of.inputs; ++input) {
    const Type* weights = As<Type>(of.weights) + input * of.outputs + begin;
    ForVectors(end - begin, [&](int64_t at, auto vectors, auto some) {
      constexpr int64_t kVectors = decltype(vectors)::value;
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vec factors = some.From(weights + at + v * kLanes);
#pragma GCC unroll 4
        for (int s = 0; s < kCount; ++s) {
          float* sum = dst + s * of.dst_stride + begin + at + v * kLanes;
          some.To(sum, some.From(sum) + factors * src[s * of.src_stride + input]);
        }
      }
    });
  }
}

template <typename Work, typename One>
MXPLAN_INLINE void ForSamples(const Product& of, const float* src, int64_t begin, int64_t end,
                              float* dst, const Work& several, const One& one) {
  int64_t sample = 0;
  for (; sample + kSamples <= of.samples; sample += kSamples) {
    several(src + sample * of.src_stride, dst + sample * of.dst_stride);
  }
  for (; sample < of.samples; ++sample) {
    one(src + sample * of.src_stride, dst + sample * of.dst_stride);
  }
  for (sample = 0; sample < of.samples; ++sample) {
    Apply(of.function, begin, end, dst + sample * of.dst_stride);
  }
}

template <typename Type>
void ByRows(const Product& of, const float* src, int64_t begin, int64_t end, float* dst) {
  ForSamples(
      of, src, begin, end, dst,
      [&](const float* x, float* y) { RowsOf<Type, kSamples>(of, x, begin, end, y); },
      [&](const float* x, float* y) { RowsOf<Type, 1>(of, x, begin, end, y); });
}

template <typename Type>
void ByColumns(const Product& of, const float* src, int64_t begin, int64_t end, float* dst) {
  ForSamples(
      of, src, begin, end, dst,
      [&](const float* x, float* y) { ColumnsOf<Type, kSamples>(of, x, begin, end, y); },
      [&](const float* x, float* y) { ColumnsOf<Type, 1>(of, x, begin, end, y); });
}

// --- pixels ----------------------------------------------------------------------------------

// What follows the gates: nothing, a tensor that is added, that and a ReLU, or whatever it is.
enum class Follows : uint8_t { kNothing, kAdded, kAddedAndRelu, kAny };

inline bool Adds(const post_ops::PostOp& post_op) {
  using Code = post_ops::PostOp::Code;
  return post_op.code == Code::kAdd || (post_op.code == Code::kSum && post_op.alpha == 1);
}

inline Follows FollowsOf(const Ending& ending) {
  if (ending.count == 0) return Follows::kNothing;
  if (ending.count > 2 || !Adds(ending.post_ops[0])) return Follows::kAny;
  if (ending.count == 1) return Follows::kAdded;
  const bool relu = ending.post_ops[1].code == post_ops::PostOp::Code::kRelu;
  return relu ? Follows::kAddedAndRelu : Follows::kAny;
}

template <typename Type>
MXPLAN_INLINE const Type* OtherOf(const Ending& ending, int64_t op, const Type* dst) {
  const bool sum = ending.post_ops[op].code == post_ops::PostOp::Code::kSum;
  return sum ? dst : As<Type>(ending.others[op]);
}

// What is stored at `place` of an image for the numbers x behind their gates.
template <Follows kFollows, int64_t kVectors, typename Type, typename Part>
MXPLAN_INLINE void End(const Ending& ending, int64_t place, const Type* dst, const Part& some,
                       Vec* x) {
  if constexpr (kFollows == Follows::kAny) {
    for (int64_t op = 0; op < ending.count; ++op) {
      const Type* other = OtherOf(ending, op, dst);
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vec second = other ? some.From(other + place + v * kLanes) : Vec{};
        x[v] = mxplan::Apply(ending.post_ops[op], x[v], second);
      }
    }
  } else if constexpr (kFollows != Follows::kNothing) {
    const Type* other = OtherOf(ending, 0, dst);
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      x[v] += some.From(other + place + v * kLanes);
      if constexpr (kFollows == Follows::kAddedAndRelu) x[v] = x[v] < 0 ? Vec{} : x[v];
    }
  }
}

template <Follows kFollows, typename Type>
MXPLAN_INLINE void ScaleSideBySide(const Image& image, const Type* src, int64_t begin, int64_t end,
                                   const float* gates, const Ending& ending, Type* dst) {
  ForRuns(image, begin, end, [&](int64_t first, int64_t channel, int64_t run) {
    for (int64_t pixel = 0; pixel < image.pixels; ++pixel) {
      ForVectors(run, [&](int64_t at, auto vectors, auto some) {
        constexpr int64_t kVectors = decltype(vectors)::value;
        const int64_t of = channel + at, place = first + at + pixel * image.pixel_stride;
        Vec x[kVectors];
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v) {
          x[v] = some.From(src + place + v * kLanes) * some.From(gates + of + v * kLanes);
        }
        End<kFollows, kVectors>(ending, place, dst, some, x);
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v) some.To(dst + place + v * kLanes, x[v]);
        if constexpr (kFollows == Follows::kAny) {  // channels that fill a block up stay 0 whatever
                                                    // is made of them
          const int64_t there = std::max<int64_t>(image.channels - of, 0);
          for (int64_t lane = there; lane < kVectors * some.count; ++lane) dst[place + lane] = 0;
        }
      });
    }
  });
}

template <Follows kFollows, typename Type>
MXPLAN_INLINE void ScaleAlone(const Image& image, const Type* src, int64_t begin, int64_t end,
                              const float* gates, const Ending& ending, Type* dst) {
  for (int64_t channel = begin; channel < end; ++channel) {
    const int64_t first = channel * image.group_stride;
    const Vec factor = Broadcast(gates[channel]);
    ForVectors(image.pixels, [&](int64_t at, auto vectors, auto some) {
      constexpr int64_t kVectors = decltype(vectors)::value;
      const int64_t place = first + at;
      Vec x[kVectors];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        x[v] = some.From(src + place + v * kLanes) * factor;
      }
      End<kFollows, kVectors>(ending, place, dst, some, x);
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) some.To(dst + place + v * kLanes, x[v]);
    });
  }
}

template <typename Type>
void Scale(const Image& image, const void* src, int64_t begin, int64_t end, const float* gates,
           const Ending& ending, void* dst) {
  auto scaled = [&](auto follows) {
    constexpr Follows kFollows = decltype(follows)::value;
    auto* work = image.together == 1 ? ScaleAlone<kFollows, Type> : ScaleSideBySide<kFollows, Type>;
    work(image, As<Type>(src), begin, end, gates, ending, static_cast<Type*>(dst));
  };
  switch (FollowsOf(ending)) {
    case Follows::kNothing:
      return scaled(std::integral_constant<Follows, Follows::kNothing>());
    case Follows::kAdded:
      return scaled(std::integral_constant<Follows, Follows::kAdded>());
    case Follows::kAddedAndRelu:
      return scaled(std::integral_constant<Follows, Follows::kAddedAndRelu>());
    case Follows::kAny:
      return scaled(std::integral_constant<Follows, Follows::kAny>());
  }
}

Kernels Get(const char* name) {
  return {name,
          {Means<float>, Means<Short>},
          {Scale<float>, Scale<Short>},
          {ByRows<float>, ByRows<Short>},
          {ByColumns<float>, ByColumns<Short>}};
}

}  // namespace
}  // namespace mxplan::squeeze_excite
