// The kernel of onednn/windows/kernels.h; included by a file that names an instruction set with
// products of pairs in bfloat16:
//
//   Vec Dot(Vec sum, Ints pairs, Ints weights)
#include <cstring>

#include "onednn/post_ops/short_functions_impl.h"
#include "onednn/vectors/counts_impl.h"
#include "onednn/vectors/numbers_impl.h"
#include "onednn/windows/kernels.h"

namespace mxplan::windows {
namespace {

constexpr int64_t kPairBytes = 4;
constexpr int64_t kGroupBytes = kLanes * kPairBytes;  // of weights that are loaded together
constexpr int kMost = 4;                              // vectors of channels together

// A pair for all lanes; one that is not whole has 0 behind its number.
template <bool kWhole>
MXPLAN_INLINE Ints PairOf(const uint8_t* from) {
  uint32_t word = 0;
  std::memcpy(&word, from, kWhole ? kPairBytes : kPairBytes / 2);
  return Ints{} + static_cast<int32_t>(word);
}

// Some vectors of channels, the last of them whole or not.
template <int kVectors, bool kWhole>
struct Panel {
  const Lines& lines;
  const Output& output;
  const uint8_t* weights;
  int64_t block;    // bytes of the weights of a vector
  int64_t channel;  // the first one
  int64_t rest;     // channels of the last vector
  Vec bias[kVectors];

  MXPLAN_INLINE Panel(const Lines& all, const Output& result, int64_t first)
      : lines(all),
        output(result),
        weights(all.weights + first / kLanes * all.rows * all.weights_row),
        block(all.rows * all.weights_row),
        channel(first),
        rest(all.channels - first - (kVectors - 1) * kLanes) {
    for (int v = 0; v < kVectors; ++v) {
      bias[v] = output.bias ? OfChannels(output.bias + first + v * kLanes, v) : Vec{};
    }
  }

  MXPLAN_INLINE static bool IsWhole(int64_t v) { return kWhole || v < kVectors - 1; }

  // The numbers of a vector's channels, which stand side by side.
  template <typename Type>
  MXPLAN_INLINE Vec OfChannels(const Type* from, int64_t v) const {
    return IsWhole(v) ? LoadAll(from) : LoadFirst(from, rest);
  }

  // The same of dst and of what stands as it does: a block is whole, with zeros behind its
  // channels.
  template <typename Type>
  MXPLAN_INLINE Vec AsDst(const Type* from, int64_t v) const {
    return lines.blocks ? LoadAll(from) : OfChannels(from, v);
  }

  template <typename Dst>
  MXPLAN_INLINE void Put(Dst* to, int64_t v, Vec x) const {
    if (IsWhole(v)) return StoreAll(to, x);
    if (!lines.blocks) return StoreFirst(to, rest, x);
    float lanes[kLanes];
    Store(lanes, x);
    StoreAll(to, LoadSome(lanes, rest));
  }

  // Any post-ops, out of line: they are too much code to stand behind every sum.
  template <typename Dst>
  __attribute__((noinline)) void FinishAll(Vec (*sums)[kVectors], int64_t pixels,
                                           int64_t at) const {
    const auto place = [&](int64_t p, int64_t v) {
      return at + p * lines.pixel + v * lines.vector;
    };
    for (int i = 0; i < output.post_op_count; ++i) {
      const PostOp& op = output.post_ops[i];
      const auto* like_dst = static_cast<const Dst*>(
          op.code == PostOp::Code::kSum ? lines.dst : static_cast<const void*>(op.data));
      ApplyToSums<Dst>(op, sums, pixels, [&](int64_t p, int64_t v) __attribute__((always_inline)) {
        return op.per_channel ? OfChannels(op.data + channel + v * kLanes, v)
                              : AsDst(like_dst + place(p, v), v);
      });
    }
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t v = 0; v < kVectors; ++v) {
        Put(static_cast<Dst*>(lines.dst) + place(p, v), v, sums[p][v]);
      }
    }
  }

  // Post-ops that cut at both ends; what is no number stays.
  template <typename Dst>
  MXPLAN_INLINE void Cut(Vec x, int64_t v, int64_t at) const {
    x = lines.cut.least > x ? Broadcast(lines.cut.least) : x;
    x = lines.cut.most < x ? Broadcast(lines.cut.most) : x;
    Put(static_cast<Dst*>(lines.dst) + at, v, x);
  }

  template <int kPixels, bool kBoth>
  MXPLAN_INLINE void AddPair(const uint8_t* from, const uint8_t* factors_of,
                             Vec (*sums)[kVectors]) const {
    Ints factors[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) factors[v] = LoadWords(factors_of + v * block);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const Ints two = PairOf<kBoth>(from + p * lines.src_pixel);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[p][v] = Dot(sums[p][v], two, factors[v]);
    }
  }

  template <int kPixels, bool kCut, typename Dst>
  __attribute__((noinline)) void Some(const uint8_t* src, int64_t at) const {
    Vec sums[kPixels][kVectors];
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[p][v] = bias[v];
    }
    for (int64_t row = 0; row < lines.rows; ++row) {
      const uint8_t* from = src + row * lines.src_row;
      const uint8_t* factors_of = weights + row * lines.weights_row;
      for (int64_t pair = 0; pair < lines.pairs; ++pair) {
        AddPair<kPixels, true>(from + pair * kPairBytes, factors_of + pair * kGroupBytes, sums);
      }
      if (lines.one_more) {
        AddPair<kPixels, false>(from + lines.pairs * kPairBytes,
                                factors_of + lines.pairs * kGroupBytes, sums);
      }
    }
    // With an address, which sums must not have to stay in registers.
    [[maybe_unused]] Vec kept[kPixels][kVectors];
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kCut) {
          Cut<Dst>(sums[p][v], v, at + p * lines.pixel + v * lines.vector);
        } else {
          kept[p][v] = sums[p][v];
        }
      }
    }
    if constexpr (!kCut) FinishAll<Dst>(kept, kPixels, at);
  }

  template <bool kCut, typename Dst>
  inline void All() const {
    // Sums and the weights and numbers that they meet fill the registers.
    constexpr int kPixels = kVectors == 4 ? 6 : kVectors == 3 ? 8 : 12;
    for (int64_t i = 0; i < lines.count; ++i) {
      const uint8_t* src = lines.src + i * lines.src_line;
      const int64_t to = lines.first + channel / kLanes * lines.vector + i * lines.line;
      InParts<kPixels>(lines.pixels, [&](auto pixels, int64_t first) {
        Some<pixels, kCut, Dst>(src + first * lines.src_pixel, to + first * lines.pixel);
      });
    }
  }
};

template <int kVectors, bool kWhole>
inline void RunPanel(const Lines& lines, const Output& output, int64_t first) {
  const Panel<kVectors, kWhole> panel(lines, output, first);
  const bool is_short = lines.number == kRealShort;
  if (lines.cut.is_all) {
    is_short ? panel.template All<true, Short>() : panel.template All<true, float>();
  } else {
    is_short ? panel.template All<false, Short>() : panel.template All<false, float>();
  }
}

inline void Run(const Lines& lines, const Output& output) {
  const int64_t all = (lines.channels + kLanes - 1) / kLanes;
  InParts<kMost>(all, [&](auto vectors, int64_t first) {
    if ((first + vectors) * kLanes <= lines.channels) {
      RunPanel<vectors, true>(lines, output, first * kLanes);
    } else {
      RunPanel<vectors, false>(lines, output, first * kLanes);
    }
  });
}

}  // namespace
}  // namespace mxplan::windows
