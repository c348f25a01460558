// Dense sums of products of 8-bit integers for AMX.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/integers/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,amx-tile,amx-int8")
#define MXPLAN_LANES 16
#include "onednn/integers/avx512_vnni_impl.h"
// Behind what they work with.
#include "onednn/amx/amx_impl.h"
#include "onednn/integers/result_impl.h"
// Behind what they work on.
#include "onednn/integers/panels_impl.h"

namespace mxplan::integers {
namespace {

struct OfUnsigned {
  static void Low() { _tile_dpbusd(0, 4, 6); }
  static void LowNext() { _tile_dpbusd(1, 4, 7); }
  static void High() { _tile_dpbusd(2, 5, 6); }
  static void HighNext() { _tile_dpbusd(3, 5, 7); }
};

struct OfSigned {
  static void Low() { _tile_dpbssd(0, 4, 6); }
  static void LowNext() { _tile_dpbssd(1, 4, 7); }
  static void High() { _tile_dpbssd(2, 5, 6); }
  static void HighNext() { _tile_dpbssd(3, 5, 7); }
};

// Whole steps of a window's rows are read where they stand.  Otherwise the rows of a window are
// copied one behind the other, or what is left of its only one is.
amx::Steps StepsOf(const Dense& product) {
  amx::Steps steps;
  const int64_t whole = product.depth / amx::kStep, rest = product.depth % amx::kStep;
  if (product.rows == 1 && whole == 0 && rest % kFour == 0) {
    steps.of_group = 1;
    steps.width = rest;
  } else if (product.rows == 1 || rest == 0) {
    steps.groups = product.rows;
    steps.group = product.src_row;
    steps.of_group = whole;
    steps.copied = rest > 0 ? 1 : 0;
  } else {
    steps.groups = 0;
    steps.copied = (product.rows * product.depth + amx::kStep - 1) / amx::kStep;
  }
  return steps;
}

// One step more, which the last copy may reach into.
int64_t Copies(const Dense& product) {
  const int64_t copied = StepsOf(product).copied;
  return copied > 0 ? (amx::kMostRows * copied + 1) * amx::kStep : 0;
}

template <int kVectors>
struct PanelOfTiles {
  const Dense& product;
  const uint8_t* weights;
  Panel<kVectors> panel;
  Residual residual;
  WeightsAhead ahead;
  amx::Steps steps;
  amx::Tiles tiles;
  Ints start[kVectors];
  // Those that are multiplied, and those before them, which meanwhile become results.
  Ints sums[2][amx::kMostRows * kVectors];

  MXPLAN_INLINE PanelOfTiles(const Dense& p, int64_t first, int64_t count, const WeightsAhead& next)
      : product(p),
        weights(reinterpret_cast<const uint8_t*>(p.weights) + first / kLane * p.weights_block),
        panel(p.result, first, count, p.rows * p.depth),
        residual(p.result),
        ahead(next),
        steps(StepsOf(p)) {
    const auto* from = reinterpret_cast<const int8_t*>(weights);
    Start(p, Weights<kVectors>{from, p.weights_block}, p.src.zero, start);
    steps.copies = p.scratch;
  }

  // Pixels from `at` on that stand at one distance, as many as a tile has rows for, or all parts
  // of a line about the same number.
  MXPLAN_INLINE int64_t Span(int64_t at, int64_t end, const uint8_t** from) const {
    const int64_t line = at / product.line, there = at % product.line;
    const int64_t image_line = line - product.first_line;
    *from = product.src.data + image_line / product.lines * product.src_image +
            image_line % product.lines * product.src_line + there * product.src_pixel;
    const int64_t count = std::min(product.line - there, end - at);
    const int64_t parts = (count + amx::kTileRows - 1) / amx::kTileRows;
    return (count + parts - 1) / parts;
  }

  void CopyPixel(const uint8_t* from, uint8_t* to) const {
    const int64_t read = steps.groups > 0 ? steps.of_group * amx::kStep : 0;
    _mm512_storeu_si512(to + (steps.copied - 1) * amx::kStep, _mm512_setzero_si512());
    for (int64_t row = 0; row < product.rows; ++row) {
      to = amx::Copy(from + row * product.src_row + read, product.depth - read, to);
    }
  }

  template <typename Product, bool kPlain>
  inline void Lines(int64_t begin, int64_t end) {
    amx::Rows rows;
    rows.stride = product.src_pixel;
    const int64_t pixel = product.result.pixel;
    int64_t before = 0;  // pixels
    int turn = 0;
    for (int64_t at = begin; at < end; turn ^= 1) {
      int64_t taken = 0;
      for (int half = 0; half < 2; ++half) {
        rows.count[half] = at + taken < end ? Span(at + taken, end, &rows.from[half]) : 0;
        taken += rows.count[half];
      }
      ahead.Ask();
      if (steps.copied > 0) CopyRows(rows);
      amx::Multiply<Product, kVectors>(&tiles, rows, steps, weights, product.weights_block, start,
                                       sums[turn]);
      Finish<kPlain>(sums[turn ^ 1], before, (at - before) * pixel + panel.channel);
      before = taken;
      at += taken;
    }
    Finish<kPlain>(sums[turn ^ 1], before, (end - before) * pixel + panel.channel);
  }

  __attribute__((noinline)) void CopyRows(const amx::Rows& rows) const {
    uint8_t* to = product.scratch;
    for (int half = 0; half < 2; ++half) {
      for (int64_t row = 0; row < rows.count[half]; ++row, to += steps.copied * amx::kStep) {
        CopyPixel(rows.from[half] + row * rows.stride, to);
      }
    }
  }

  template <bool kPlain>
  __attribute__((noinline)) void Finish(const Ints* all, int64_t pixels, int64_t to) const {
    if (panel.count == kVectors * kLanes) {
      FinishSome<kPlain, true>(all, pixels, to);
    } else {
      FinishSome<kPlain, false>(all, pixels, to);
    }
  }

  // Questions that are the same for all pixels are asked here.
  template <bool kPlain, bool kWhole>
  MXPLAN_INLINE void FinishSome(const Ints* all, int64_t pixels, int64_t to) const {
    if constexpr (kPlain) {
      ForPixels<kWhole>(all, pixels, to, [](auto tile, auto* sums) __attribute__((always_inline)) {
        tile.WritePlain(sums);
      });
    } else if (!residual.data) {
      ForPixels<kWhole>(all, pixels, to, [](auto tile, auto* sums) __attribute__((always_inline)) {
        tile.Write(sums);
      });
    } else if (residual.is_signed) {
      FinishResidual<true, kWhole>(all, pixels, to);
    } else {
      FinishResidual<false, kWhole>(all, pixels, to);
    }
  }

  template <bool kSigned, bool kWhole>
  MXPLAN_INLINE void FinishResidual(const Ints* all, int64_t pixels, int64_t to) const {
    if (residual.quantizer) {
      ForPixels<kWhole>(all, pixels, to, [&](auto tile, auto* sums) __attribute__((always_inline)) {
        tile.template WriteResidual<kSigned, true>(residual, sums);
      });
    } else {
      ForPixels<kWhole>(all, pixels, to, [&](auto tile, auto* sums) __attribute__((always_inline)) {
        tile.template WriteResidual<kSigned, false>(residual, sums);
      });
    }
  }

  // Calls write(tile, its sums) for all pixels, several at a time while there are as many.
  template <bool kWhole, typename Write>
  MXPLAN_INLINE void ForPixels(const Ints* all, int64_t pixels, int64_t to,
                               const Write& write) const {
    constexpr int kTogether = kFinished<amx::kTileRows, kVectors>;
    int64_t pixel = 0;
    for (; pixel + kTogether <= pixels; pixel += kTogether) {
      const int64_t at = to + pixel * product.result.pixel;
      write(Tile<kTogether, kVectors, kWhole>{product.result, panel, at}, all + pixel * kVectors);
    }
    for (; pixel < pixels; ++pixel) {
      const int64_t at = to + pixel * product.result.pixel;
      write(Tile<1, kVectors, kWhole>{product.result, panel, at}, all + pixel * kVectors);
    }
  }
};

template <int kVectors>
void RunPanel(const Dense& product, int64_t begin, int64_t end, int64_t channel, int64_t channels) {
  const WeightsAhead ahead(product, channel, channels, amx::kMostRows, begin, end);
  PanelOfTiles<kVectors> panel(product, channel, channels, ahead);
  if (product.src.is_signed) return panel.template Lines<OfSigned, false>(begin, end);
  if (panel.panel.IsPlain()) return panel.template Lines<OfUnsigned, true>(begin, end);
  panel.template Lines<OfUnsigned, false>(begin, end);
}

}  // namespace

DenseKernel AmxDense() { return {"avx512_amx", kNumbers, nullptr, RunDense, Copies}; }

}  // namespace mxplan::integers
