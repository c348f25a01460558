// The kernel of onednn/windows/kernels.h; included by a file that names an instruction set with
// products of pairs in bfloat16:
//
//   Vec Dot(Vec sum, Ints pairs, Ints weights)
#include <cstring>

#include "onednn/post_ops/apply_impl.h"
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

// Some vectors of channels.
template <int kVectors>
struct Panel {
  const Lines& lines;
  const Output& output;
  const uint8_t* weights;
  int64_t block;    // bytes of the weights of a vector
  int64_t channel;  // the first one
  Vec bias[kVectors];

  MXPLAN_INLINE Panel(const Lines& all, const Output& result, int64_t first)
      : lines(all),
        output(result),
        weights(all.weights + first / kLanes * all.rows * all.weights_row),
        block(all.rows * all.weights_row),
        channel(first) {
    for (int v = 0; v < kVectors; ++v) {
      bias[v] = output.bias ? Load(output.bias + first + v * kLanes) : Vec{};
    }
  }

  // Any post-ops on the vector `v` of a pixel.
  template <typename Dst>
  MXPLAN_INLINE void Finish(Vec x, int64_t v, int64_t at) const {
    auto* to = static_cast<Dst*>(lines.dst) + at;
    for (int i = 0; i < output.post_op_count; ++i) {
      const PostOp& op = output.post_ops[i];
      Vec other{};
      if (op.code == PostOp::Code::kSum) other = LoadAll(to);
      if (op.data && op.per_channel) {
        other = Load(op.data + channel + v * kLanes);
      } else if (op.data) {
        other = LoadAll(reinterpret_cast<const Dst*>(op.data) + at);
      }
      x = Apply(op, x, other);
    }
    StoreAll(to, x);
  }

  // Post-ops that cut at both ends; what is no number stays.
  template <typename Dst>
  MXPLAN_INLINE void Cut(Vec x, int64_t at) const {
    x = lines.least > x ? Broadcast(lines.least) : x;
    x = lines.most < x ? Broadcast(lines.most) : x;
    StoreAll(static_cast<Dst*>(lines.dst) + at, x);
  }

  template <int kPixels, bool kWhole>
  MXPLAN_INLINE void AddPair(const uint8_t* from, const uint8_t* factors_of,
                             Vec (*sums)[kVectors]) const {
    Ints factors[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) factors[v] = LoadWords(factors_of + v * block);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const Ints two = PairOf<kWhole>(from + p * lines.src_pixel);
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
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const int64_t to = at + p * lines.pixel + v * lines.vector;
        if constexpr (kCut) {
          Cut<Dst>(sums[p][v], to);
        } else {
          Finish<Dst>(sums[p][v], v, to);
        }
      }
    }
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

template <int kVectors>
inline void RunPanel(const Lines& lines, const Output& output, int64_t first) {
  const Panel<kVectors> panel(lines, output, first);
  const bool is_short = lines.number == kRealShort;
  if (lines.is_cut) {
    is_short ? panel.template All<true, Short>() : panel.template All<true, float>();
  } else {
    is_short ? panel.template All<false, Short>() : panel.template All<false, float>();
  }
}

inline void Run(const Lines& lines, const Output& output) {
  InParts<kMost>(lines.channels / kLanes, [&](auto vectors, int64_t first) {
    RunPanel<vectors>(lines, output, first * kLanes);
  });
}

}  // namespace
}  // namespace mxplan::windows
