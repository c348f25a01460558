// The kernel of onednn/statistics/kernels.h; included once for each instruction set, by a file that
// names it.  Everything is in an unnamed namespace, so that the linker never takes one set's code
// for another's.
#include <algorithm>
#include <cstring>

#include "onednn/statistics/kernels.h"

namespace mxplan::statistics {
namespace {

constexpr int64_t kChain = 32;               // additions one after another in float32
constexpr int64_t kChunk = 4 * kChain;       // positions, by four sums side by side
constexpr int64_t kNarrow = 2 * kMostLanes;  // fewer channels than these are summed in registers

// Vectors by name: GCC passes over attributes of a type whose size is a template's parameter.
struct Sixteen {
  static constexpr int kLanes = 16;
  using Vec = float __attribute__((vector_size(64)));
  using Unaligned = float __attribute__((vector_size(64), aligned(4), may_alias));
};
struct Eight {
  static constexpr int kLanes = 8;
  using Vec = float __attribute__((vector_size(32)));
  using Unaligned = float __attribute__((vector_size(32), aligned(4), may_alias));
  using Doubles = double __attribute__((vector_size(64)));
  using UnalignedDoubles = double __attribute__((vector_size(64), aligned(8), may_alias));
};
struct One {
  static constexpr int kLanes = 1;
  using Vec = float;
  using Unaligned = float;
};

template <typename Lanes>
const typename Lanes::Unaligned& Load(const float* numbers) {
  return *reinterpret_cast<const typename Lanes::Unaligned*>(numbers);
}

template <typename Lanes>
void Store(float* numbers, const typename Lanes::Vec& vec) {
  *reinterpret_cast<typename Lanes::Unaligned*>(numbers) = vec;
}

// Of a chunk by channel: distances from pivots, and their squares, added up.
struct alignas(64) Sums {
  float pivots[kMostChannels], distances[kMostChannels], squares[kMostChannels];
};

// One vector of channels, whose sums stay in registers.
template <typename Lanes>
void AddNarrow(const Rows& rows, const float* src, Sums* sums) {
  using Vec = typename Lanes::Vec;
  const Vec pivot = Load<Lanes>(sums->pivots);
  Vec distances[4] = {}, squares[4] = {};
  auto add = [&](int at, const float* numbers) {
    const Vec distance = Load<Lanes>(numbers) - pivot;
    distances[at] += distance;
    squares[at] += distance * distance;
  };
  for (int64_t row = 0; row < rows.outer; ++row) {
    const float* numbers = src + row * rows.outer_stride;
    int64_t i = 0;
    for (; i + 4 <= rows.inner; i += 4, numbers += 4 * rows.step) {
      add(0, numbers);
      add(1, numbers + rows.step);
      add(2, numbers + 2 * rows.step);
      add(3, numbers + 3 * rows.step);
    }
    for (int at = 0; i < rows.inner; ++i, ++at, numbers += rows.step) add(at, numbers);
  }
  Store<Lanes>(sums->distances, (distances[0] + distances[1]) + (distances[2] + distances[3]));
  Store<Lanes>(sums->squares, (squares[0] + squares[1]) + (squares[2] + squares[3]));
}

// Many channels, a multiple of 16, so that each position is read in one go; sums stay in the
// nearest cache.
void AddWide(const Rows& rows, const float* src, int channels, Sums* sums) {
  using Vec = Sixteen::Vec;
  std::memset(sums->distances, 0, sizeof(float) * channels);
  std::memset(sums->squares, 0, sizeof(float) * channels);
  auto add = [&](int channel, const Vec& distance, const Vec& square) {
    Store<Sixteen>(sums->distances + channel, Load<Sixteen>(sums->distances + channel) + distance);
    Store<Sixteen>(sums->squares + channel, Load<Sixteen>(sums->squares + channel) + square);
  };
  for (int64_t row = 0; row < rows.outer; ++row) {
    const float* numbers = src + row * rows.outer_stride;
    int64_t i = 0;
    for (; i + 4 <= rows.inner; i += 4, numbers += 4 * rows.step) {
      for (int channel = 0; channel < channels; channel += Sixteen::kLanes) {
        const Vec pivot = Load<Sixteen>(sums->pivots + channel);
        const Vec a = Load<Sixteen>(numbers + channel) - pivot;
        const Vec b = Load<Sixteen>(numbers + rows.step + channel) - pivot;
        const Vec c = Load<Sixteen>(numbers + 2 * rows.step + channel) - pivot;
        const Vec d = Load<Sixteen>(numbers + 3 * rows.step + channel) - pivot;
        add(channel, (a + b) + (c + d), (a * a + b * b) + (c * c + d * d));
      }
    }
    for (; i < rows.inner; ++i, numbers += rows.step) {
      for (int channel = 0; channel < channels; channel += Sixteen::kLanes) {
        const Vec a = Load<Sixteen>(numbers + channel) - Load<Sixteen>(sums->pivots + channel);
        add(channel, a, a * a);
      }
    }
  }
}

template <typename Lanes>
void AddChunk(const Rows& rows, const float* src, int channels, Sums* sums) {
  if constexpr (Lanes::kLanes == kMostLanes) {
    if (channels >= kNarrow) return AddWide(rows, src, channels, sums);
  }
  AddNarrow<Lanes>(rows, src, sums);
}

// Joins a chunk of `count` numbers, by channel, to the `before` numbers that were found; T is
// double, or eight of them.
template <typename T>
void Join(const T& pivot, const T& distance, const T& square, double count, double before, T* mean,
          T* squares) {
  const double share = count / (before + count);
  const T rest = distance / count;
  const T away = pivot - *mean + rest;
  *mean += away * share;
  *squares += square - distance * rest + away * away * (before * share);
}

template <typename Lanes>
void JoinSums(const Sums& sums, int channels, double count, double before, double* mean,
              double* squares) {
  if constexpr (Lanes::kLanes == 1) {
    Join<double>(sums.pivots[0], sums.distances[0], sums.squares[0], count, before, mean, squares);
  } else {
    using Doubles = Eight::Doubles;
    auto widen = [](const float* numbers, Doubles* doubles) {
      *doubles = __builtin_convertvector(Eight::Vec(Load<Eight>(numbers)), Doubles);
    };
    for (int at = 0; at < channels; at += Eight::kLanes) {
      auto* to_mean = reinterpret_cast<Eight::UnalignedDoubles*>(mean + at);
      auto* to_squares = reinterpret_cast<Eight::UnalignedDoubles*>(squares + at);
      Doubles middle = *to_mean, squared = *to_squares, pivot, distance, square;
      widen(sums.pivots + at, &pivot);
      widen(sums.distances + at, &distance);
      widen(sums.squares + at, &square);
      Join<Doubles>(pivot, distance, square, count, before, &middle, &squared);
      *to_mean = middle;
      *to_squares = squared;
    }
  }
}

// A chunk's pivots are the means of all that came before it.  A chunk far from them has errors of
// its distance squared, which is then in the variance many times.  The first chunk's are its own.
template <typename Lanes>
void AddRows(const Rows& rows, const float* src, int channels, double* mean, double* squares) {
  const int64_t chain = (rows.inner + 3) / 4;
  const int64_t together = std::max<int64_t>(chain > 0 ? kChain / chain : 1, 1);
  Sums sums;
  double before = 0;
  for (int64_t row = 0; row < rows.outer; row += together) {
    for (int64_t begin = 0; begin < rows.inner; begin += kChunk) {
      Rows chunk = rows;
      chunk.outer = std::min(together, rows.outer - row);
      chunk.inner = std::min(kChunk, rows.inner - begin);
      const float* numbers = src + row * rows.outer_stride + begin * rows.step;
      const auto count = static_cast<double>(chunk.outer * chunk.inner);
      if (before == 0) {
        std::memset(sums.pivots, 0, sizeof(float) * channels);
        AddChunk<Lanes>(chunk, numbers, channels, &sums);
        const auto divisor = static_cast<float>(count);
        for (int at = 0; at < channels; ++at) sums.pivots[at] = sums.distances[at] / divisor;
      } else {
        for (int at = 0; at < channels; ++at) sums.pivots[at] = static_cast<float>(mean[at]);
      }
      AddChunk<Lanes>(chunk, numbers, channels, &sums);
      JoinSums<Lanes>(sums, channels, count, before, mean, squares);
      before += count;
    }
  }
}

inline void FindMoments(const Rows& rows, const float* src, int channels, Moments* found) {
  std::fill_n(found->mean, channels, 0.0);
  std::fill_n(found->squares, channels, 0.0);
  int at = 0;
  auto add = [&](auto lanes, int count) {
    AddRows<decltype(lanes)>(rows, src + at, count, found->mean + at, found->squares + at);
    at += count;
  };
  if (channels >= kNarrow) add(Sixteen(), channels / kMostLanes * kMostLanes);
  if (channels - at >= Sixteen::kLanes) add(Sixteen(), Sixteen::kLanes);
  if (channels - at >= Eight::kLanes) add(Eight(), Eight::kLanes);
  while (at < channels) add(One(), 1);
  found->count = rows.outer * rows.inner;
}

}  // namespace
}  // namespace mxplan::statistics
