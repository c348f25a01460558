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
#include "onednn/amx/groups_impl.h"
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

template <int kVectors>
struct PanelOfTiles {
  const Dense& product;
  const uint8_t* weights;
  Panel<kVectors> panel;
  Residual residual;
  amx::Tiles* tiles;
  Ints start[kVectors];
  // Those that are multiplied, and those before them, which meanwhile become results.
  Ints sums[2][amx::kMostRows * kVectors];

  MXPLAN_INLINE PanelOfTiles(const Dense& p, int64_t first, int64_t count, amx::Tiles* registers)
      : product(p),
        weights(reinterpret_cast<const uint8_t*>(p.weights) + first / kLane * p.weights_block),
        panel(p.result, first, count, p.rows * p.depth),
        residual(p.result),
        tiles(registers) {
    const auto* from = reinterpret_cast<const int8_t*>(weights);
    Start(p, Weights<kVectors>{from, p.weights_block}, p.src.zero, start);
  }

  template <typename Product, bool kPlain>
  inline void Lines(int64_t begin, int64_t end) {
    amx::Groups all(product, product.src.data, begin, end, product.scratch);
    amx::Group groups[2];
    int turn = 0;
    for (; all.Take(1, &groups[turn]) > 0; turn ^= 1) {
      const amx::Group& group = groups[turn];
      amx::Multiply<Product, kVectors>(tiles, group.rows, group.steps, weights,
                                       product.weights_block, start, sums[turn]);
      FinishGroup<kPlain>(groups[turn ^ 1], sums[turn ^ 1]);
    }
    FinishGroup<kPlain>(groups[turn ^ 1], sums[turn ^ 1]);
  }

  // Rows that are pixels side by side are finished together.
  template <bool kPlain>
  MXPLAN_INLINE void FinishGroup(const amx::Group& group, const Ints* all) const {
    for (int64_t row = 0, end = 0; row < group.count; row = end) {
      const int64_t first = group.pixels[row];
      for (end = row + 1; end < group.count && group.pixels[end] == first + (end - row);) ++end;
      if (first == amx::kNone) {
        end = row + 1;
      } else {
        Finish<kPlain>(all + row * kVectors, end - row,
                       first * product.result.pixel + panel.channel);
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

template <int kVectors, typename Shared>
void RunPanel(const Dense& product, int64_t begin, int64_t end, int64_t channel, int64_t channels,
              Shared* tiles) {
  PanelOfTiles<kVectors> panel(product, channel, channels, tiles);
  if (product.src.is_signed) return panel.template Lines<OfSigned, false>(begin, end);
  if (panel.panel.IsPlain()) return panel.template Lines<OfUnsigned, true>(begin, end);
  panel.template Lines<OfUnsigned, false>(begin, end);
}

}  // namespace

DenseKernel AmxDense() {
  return {"avx512_amx", kNumbers, nullptr, RunDense<amx::Tiles>,
          [](const Dense& product) { return amx::Groups::CopiesOf(product); }};
}

}  // namespace mxplan::integers
