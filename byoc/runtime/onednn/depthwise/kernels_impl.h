// The kernel of onednn/depthwise/kernels.h; included by a file that names an instruction set and
// has
//
//   LoadApart<kWhole>(from, mask, x)     numbers of a block in the order in which they are summed
//   LoadWeights(from, x)                 its weights, likewise
//   SetApart(x), BringTogether(x)        from the order of channels into that one, and back
//   StoreTogether<kWhole>(to, mask, x)   sums in bfloat16, in the order of channels
//
// for blocks in two vectors and half blocks in one.
//
// Several pixels of a row of dst are summed together, whose sums stay in registers: a column of src
// is loaded once for all of them, and the weights of a row of the window once, too.
//
//   columns of src   0   1   2   3   4   5          a window of 3 columns, stride 1
//   pixel 0          w0  w1  w2
//   pixel 1              w0  w1  w2
//   pixel 2                  w0  w1  w2
#include <algorithm>
#include <cstdint>

#include "onednn/depthwise/kernels.h"
#include "onednn/post_ops/short_functions_impl.h"
#include "onednn/vectors/counts_impl.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan::depthwise {
namespace {

constexpr int kMostPixels = 8;
constexpr int kMostColumns = 7;  // of a window whose weights stay in registers, beside fewer pixels
constexpr int kColumnsOfPart = 6;  // of a wider window; parts have no fewer than kFewestOfPart
constexpr int kFewestOfPart = 4;
constexpr int64_t kBandBytes = 256 << 10;  // of src, which stay in cache from block to block

// Pixels side by side in a row of dst.
struct Tile {
  const Short* src = nullptr;   // of its image, the first channel
  int64_t row = 0, column = 0;  // of src under the first pixel's first tap
  int64_t first = 0, end = 0;   // rows of the window that are inside
};

// Some channels: a block, whole or not, or up to half of one.
template <int kVectors, bool kWhole>
struct Panel {
  const Depthwise& product;
  const Output& output;
  int64_t channel, count;
  uint32_t mask;
  const float* weights;
  Vec bias[kVectors];

  using Sums = Vec[kVectors];

  MXPLAN_INLINE Panel(const Depthwise& all, const Output& result, int64_t first)
      : product(all),
        output(result),
        channel(first),
        count(std::min(all.channels - first, kVectors * kLanes)),
        mask(FirstBits(count)),
        weights(all.weights + first * all.y.window * all.x.window) {
    for (int64_t v = 0; v < kVectors; ++v) {
      bias[v] = output.bias ? OfChannels(output.bias + first, v) : Vec{};
    }
    SetApart(bias);
  }

  // The numbers of a vector's channels, in their order.
  template <typename Type>
  MXPLAN_INLINE Vec OfChannels(const Type* from, int64_t v) const {
    if constexpr (kWhole) return LoadAll(from + v * kLanes);
    return LoadFirst(from + v * kLanes, Left(v));
  }
  template <typename Type>
  MXPLAN_INLINE void Put(Type* to, int64_t v, Vec x) const {
    if constexpr (kWhole) return StoreAll(to + v * kLanes, x);
    StoreFirst(to + v * kLanes, Left(v), x);
  }
  MXPLAN_INLINE int64_t Left(int64_t v) const {
    return std::min(std::max<int64_t>(count - v * kLanes, 0), kLanes);
  }

  // --- sums

  // Sums of kColumns columns of windows, from `first` on, at a distance of kStride.  Those of the
  // columns in front of them stand in `to`.
  template <int kColumns, int kStride, int kPixels>
  __attribute__((noinline)) void Sum(const Tile& tile, int64_t first, Sums* to) const {
    constexpr int kRead = (kPixels - 1) * kStride + kColumns;
    const int64_t pixel = product.channels, line = product.x.src * pixel;
    const int64_t window_row = product.x.window * kBlock;
    const Short* row = tile.src + (tile.row + tile.first * product.y.dilation) * line +
                       (tile.column + first) * pixel;
    const float* factors_of = weights + tile.first * window_row + first * kBlock;
    uint32_t inside = Inside(tile.column + first, kRead);  // a bit for each column of src
    Vec sums[kPixels][kVectors];
    Start(sums, first == 0 ? nullptr : to);
    for (int64_t y = tile.first; y < tile.end; ++y) {
      Vec factors[kColumns][kVectors];
#pragma GCC unroll 8
      for (int t = 0; t < kColumns; ++t) LoadWeights(factors_of + t * kBlock, factors[t]);
      const Short* from = row;
      asm("" : "+r"(inside));  // its bits are looked at where they stand
#pragma GCC unroll 32
      for (int i = 0; i < kRead; ++i, from += pixel) {
        asm("" : "+r"(from));
        if (!(inside & (1U << i))) continue;
        Vec x[kVectors];
        LoadApart<kWhole>(from, mask, x);
#pragma GCC unroll 16
        for (int p = 0; p < kPixels; ++p) {
          const int t = i - p * kStride;
          if (t < 0 || t >= kColumns) continue;
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sums[p][v] += x[v] * factors[t][v];
        }
      }
      row += product.y.dilation * line;
      factors_of += window_row;
    }
    End(sums, to);
  }

  // Sums of any windows.  Unless kInside every tap is looked at, whether it is in the padding.
  template <int kPixels, bool kInside>
  __attribute__((noinline)) void SumAny(const Tile& tile, Sums* to) const {
    const Axis& x_axis = product.x;
    const int64_t pixel = product.channels, line = x_axis.src * pixel;
    Vec sums[kPixels][kVectors];
    Start(sums, nullptr);
    for (int64_t y = tile.first; y < tile.end; ++y) {
      const Short* row = tile.src + (tile.row + y * product.y.dilation) * line;
      for (int64_t t = 0; t < x_axis.window; ++t) {
        Vec factors[kVectors];
        LoadWeights(weights + (y * x_axis.window + t) * kBlock, factors);
        const int64_t column = tile.column + t * x_axis.dilation;
#pragma GCC unroll 16
        for (int p = 0; p < kPixels; ++p) {
          const int64_t at = column + p * x_axis.stride;
          if (!kInside && (at < 0 || at >= x_axis.src)) continue;
          Vec x[kVectors];
          LoadApart<kWhole>(row + at * pixel, mask, x);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sums[p][v] += x[v] * factors[v];
        }
      }
    }
    End(sums, to);
  }

  // Sums begin with the bias, or as others left them.
  template <int kPixels>
  MXPLAN_INLINE void Start(Vec (&sums)[kPixels][kVectors], const Sums* begun) const {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[p][v] = begun ? begun[p][v] : bias[v];
    }
  }

  // Sums go to memory: post-ops are too much code to stand behind every sum.
  template <int kPixels>
  MXPLAN_INLINE static void End(const Vec (&sums)[kPixels][kVectors], Sums* to) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) to[p][v] = sums[p][v];
    }
  }

  // --- results

  // Post-ops that cut at both ends; what is no number stays.  `at` counts numbers of dst.
  template <typename Dst>
  MXPLAN_INLINE void Cut(const Sums* sums, int64_t pixels, Dst* dst) const {
    const Vec least = Broadcast(product.cut.least), most = Broadcast(product.cut.most);
    const int64_t pixel = product.channels;
    for (int64_t p = 0; p < pixels; ++p, dst += pixel) {
      Sums x;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Vec raised = least > sums[p][v] ? least : sums[p][v];
        x[v] = most < raised ? most : raised;
      }
      if constexpr (sizeof(Dst) == sizeof(Short)) {
        StoreTogether<kWhole>(dst, mask, x);
      } else {
        BringTogether(x);
        for (int64_t v = 0; v < kVectors; ++v) Put(dst, v, x[v]);
      }
    }
  }

  template <typename Dst>
  __attribute__((noinline)) void Finish(Sums* sums, int64_t pixels, int64_t at) const {
    auto* dst = static_cast<Dst*>(product.dst);
    if (product.cut.is_all) return Cut(sums, pixels, dst + at);
    for (int64_t p = 0; p < pixels; ++p) BringTogether(sums[p]);
    for (int i = 0; i < output.post_op_count; ++i) {
      const PostOp& op = output.post_ops[i];
      const auto* like_dst = static_cast<const Dst*>(
          op.code == PostOp::Code::kSum ? product.dst : static_cast<const void*>(op.data));
      ApplyToSums<Dst>(op, sums, pixels, [&](int64_t p, int64_t v) __attribute__((always_inline)) {
        return op.per_channel ? OfChannels(op.data + channel, v)
                              : OfChannels(like_dst + at + p * product.channels, v);
      });
    }
    for (int64_t p = 0; p < pixels; ++p, at += product.channels) {
      for (int64_t v = 0; v < kVectors; ++v) Put(dst + at, v, sums[p][v]);
    }
  }

  // --- rows

  // kColumns 0: any number of them; kStride 0: any stride and dilation.
  template <int kColumns, int kStride>
  MXPLAN_INLINE void Row(int64_t image, int64_t row) const {
    const Axis &y = product.y, &x = product.x;
    Tile tile;
    tile.src = product.src + image * y.src * x.src * product.channels + channel;
    tile.row = row * y.stride - y.padding;
    tile.first = y.FirstTap(row);
    tile.end = y.EndTap(row);
    const int64_t to = (image * y.dst + row) * x.dst * product.channels + channel;
    // Sums, the weights and numbers that they meet, and what sets these apart fill the registers.
    constexpr int kMost = kColumns == kMostColumns ? kMostPixels - 1 : kMostPixels;
    InParts<kMost>(x.dst, [&](auto pixels, int64_t first) {
      constexpr int kPixels = decltype(pixels)::value;
      tile.column = first * x.stride - x.padding;
      Vec sums[kPixels][kVectors];
      if constexpr (kStride == 0) {
        SumWhole<kPixels>(tile, sums);
      } else if constexpr (kColumns == 0) {
        SumInParts<kStride, kPixels>(tile, sums);
      } else {
        Sum<kColumns, kStride, kPixels>(tile, 0, sums);
      }
      const int64_t at = to + first * product.channels;
      if (product.number == kRealShort) {
        Finish<Short>(sums, pixels, at);
      } else {
        Finish<float>(sums, pixels, at);
      }
    });
  }

  template <int kPixels>
  MXPLAN_INLINE void SumWhole(const Tile& tile, Sums* to) const {
    const Axis& x = product.x;
    const int64_t last = (kPixels - 1) * x.stride + (x.window - 1) * x.dilation;
    if (tile.column >= 0 && tile.column + last < x.src) {
      SumAny<kPixels, true>(tile, to);
    } else {
      SumAny<kPixels, false>(tile, to);
    }
  }

  template <int kStride, int kPixels>
  MXPLAN_INLINE void SumInParts(const Tile& tile, Sums* to) const {
    InParts<kColumnsOfPart>(product.x.window, [&](auto columns, int64_t first) {
      constexpr int kColumns = decltype(columns)::value;
      if constexpr (kColumns >= kFewestOfPart) Sum<kColumns, kStride, kPixels>(tile, first, to);
    });
  }

  // A bit for each of `count` columns from `column` on that is inside of src.
  MXPLAN_INLINE uint32_t Inside(int64_t column, int64_t count) const {
    const int64_t first = std::clamp<int64_t>(-column, 0, count);
    const int64_t end = std::clamp<int64_t>(product.x.src - column, first, count);
    return FirstBits(end) & ~FirstBits(first);
  }
};

template <int kColumns, int kStride>
void RunWindows(const Depthwise& product, const Output& output, const Part& part) {
  const Axis& y = product.y;
  const int64_t line = y.stride * product.x.src * product.channels * sizeof(Short);
  const int64_t band = std::max<int64_t>(kBandBytes / line, 1);
  const int64_t channels = std::min(part.end_block * kBlock, product.channels);
  for (int64_t row = part.row; row < part.end_row; row += band) {
    const int64_t end = std::min(row + band, part.end_row);
    for (int64_t channel = part.block * kBlock; channel < channels; channel += kBlock) {
      const auto run = [&](const auto& panel) {
        for (int64_t i = row; i < end; ++i) panel.template Row<kColumns, kStride>(part.image, i);
      };
      const int64_t left = channels - channel;
      if (left >= kBlock) {
        run(Panel<2, true>(product, output, channel));
      } else if (left > kBlock / 2) {
        run(Panel<2, false>(product, output, channel));
      } else {
        run(Panel<1, false>(product, output, channel));
      }
    }
  }
}

template <int kStride>
void RunColumns(const Depthwise& product, const Output& output, const Part& part) {
  if (product.x.window > kMostColumns) return RunWindows<0, kStride>(product, output, part);
  WithConstant<kMostColumns>(product.x.window, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    if constexpr (kColumns > kStride) RunWindows<kColumns, kStride>(product, output, part);
  });
}

void Run(const Depthwise& product, const Output& output, const Part& part) {
  const Axis& x = product.x;
  if (!ReusesColumns(x)) return RunWindows<0, 0>(product, output, part);
  x.stride == 1 ? RunColumns<1>(product, output, part) : RunColumns<2>(product, output, part);
}

}  // namespace
}  // namespace mxplan::depthwise
