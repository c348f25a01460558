// Dense sums in registers; included behind result_impl.h, once for each instruction set.
#include "onednn/integers/panels_impl.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kLine = 64;  // bytes of one in a cache

// The weights of the next panel, which stand behind those of this one: nobody sees them coming
// but the loop over this one's pixels.
struct WeightsAhead {
  const int8_t* next = nullptr;
  int64_t asked = 0;  // bytes each time

  // Of the panel of some channels that is multiplied with pixels [begin, end), `pixels` at a time.
  MXPLAN_INLINE WeightsAhead(const Dense& product, int64_t channel, int64_t channels,
                             int64_t pixels, int64_t begin, int64_t end) {
    if (channel + channels >= product.channels) return;
    const int64_t bytes = (channels + kLane - 1) / kLane * product.weights_block;
    next = product.weights + channel / kLane * product.weights_block + bytes;
    asked = (bytes * pixels / (end - begin) + kLine - 1) / kLine * kLine;
  }

  MXPLAN_INLINE void Ask() {
    for (const int8_t* end = next + asked; next < end; next += kLine) {
      __builtin_prefetch(next, 0, 2);
    }
  }
};

template <bool kSigned>
MXPLAN_INLINE Ints Unsigned(Ints bytes) {
  constexpr auto kSigns = static_cast<int32_t>(0x80808080U);
  return kSigned ? bytes ^ kSigns : bytes;
}

template <int kVectors, int kPixels, bool kSigned>
MXPLAN_INLINE void AddRow(const Dense& product, const uint8_t* src,
                          const Weights<kVectors>& weights, Ints (*sums)[kVectors]) {
  const int64_t whole = product.depth / kFour, rest = product.depth % kFour;
  const int64_t pixel = product.src_pixel;
#pragma GCC unroll kGroupsAtOnce
  for (int64_t group = 0; group < whole; ++group) {
    Ints factors[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) factors[v] = weights(group, v);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const Ints four = Unsigned<kSigned>(FourOf(src + p * pixel + group * kFour));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[p][v] = Dot(sums[p][v], four, factors[v]);
    }
  }
  if (rest == 0) return;
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
    const Ints some = Unsigned<kSigned>(SomeOf(src + p * pixel + whole * kFour, rest));
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[p][v] = Dot(sums[p][v], some, weights(whole, v));
  }
}

template <int kVectors, int kPixels, bool kSigned>
MXPLAN_INLINE void Sum(const Dense& product, const uint8_t* src, const Weights<kVectors>& weights,
                       const Ints* start, Ints (*sums)[kVectors]) {
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[p][v] = start[v];
  }
  for (int64_t row = 0; row < product.rows; ++row) {
    const uint8_t* from = src + row * product.src_row;
    AddRow<kVectors, kPixels, kSigned>(product, from, weights.OfRow(product, row), sums);
  }
}

template <int kVectors>
struct PanelOfPixels {
  const Dense& product;
  Weights<kVectors> weights;
  Panel<kVectors> panel;
  Ints start[kVectors];
  WeightsAhead ahead;

  MXPLAN_INLINE PanelOfPixels(const Dense& p, int64_t first, int64_t count,
                              const WeightsAhead& next)
      : product(p),
        weights{p.weights + first / kLane * p.weights_block, p.weights_block},
        panel(p.result, first, count, p.rows * (p.depth + kFour)),
        ahead(next) {
    // Bytes are read as unsigned, with 128 added to signed ones.
    Start(p, weights, p.src.zero + (p.src.is_signed ? 128 : 0), start);
  }

  // kPixels of a line.
  template <int kPixels, bool kSigned, bool kPlain>
  __attribute__((noinline)) void Some(const uint8_t* src, int64_t to) {
    ahead.Ask();
    Ints sums[kPixels][kVectors];
    Sum<kVectors, kPixels, kSigned>(product, src, weights, start, sums);
    constexpr int kTogether = kFinished<kPixels, kVectors>, kRest = kPixels % kTogether;
#pragma GCC unroll 16
    for (int p = 0; p + kTogether <= kPixels; p += kTogether) {
      Finish<kTogether, kPlain>(&sums[p][0], to + p * product.result.pixel);
    }
    if constexpr (kRest > 0) {
      constexpr int kWhole = kPixels - kRest;
      Finish<kRest, kPlain>(&sums[kWhole][0], to + kWhole * product.result.pixel);
    }
  }

  template <int kPixels, bool kPlain>
  MXPLAN_INLINE void Finish(const Ints* sums, int64_t to) const {
    const Tile<kPixels, kVectors> tile{product.result, panel, to};
    if constexpr (kPlain) {
      tile.WritePlain(sums);
    } else {
      tile.Write(sums);
    }
  }

  template <int kPixels, bool kSigned, bool kPlain>
  inline void Lines(int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t line = begin / product.line, at = begin % product.line;
      const int64_t count = std::min(product.line - at, end - begin);
      const uint8_t* src = product.src.data + product.LineAt(line) + at * product.src_pixel;
      const int64_t dst = begin * product.result.pixel + panel.channel;
      InParts<kPixels>(count, [&](auto pixels, int64_t first) {
        Some<pixels, kSigned, kPlain>(src + first * product.src_pixel,
                                      dst + first * product.result.pixel);
      });
      begin += count;
    }
  }
};

struct Nothing {};

template <int kVectors, typename Shared>
void RunPanel(const Dense& product, int64_t begin, int64_t end, int64_t channel, int64_t channels,
              Shared* /*shared*/) {
  // Sums and the weights and numbers that they meet fill the registers.
  constexpr int kPixels = kPixelsBy[kVectors];
  const WeightsAhead ahead(product, channel, channels, kPixels, begin, end);
  PanelOfPixels<kVectors> panel(product, channel, channels, ahead);
  if constexpr (kNumbers == kFour) {  // words have their signs
    if (product.src.is_signed) return panel.template Lines<kPixels, true, false>(begin, end);
  }
  if (panel.panel.IsPlain()) {
    panel.template Lines<kPixels, false, true>(begin, end);
  } else {
    panel.template Lines<kPixels, false, false>(begin, end);
  }
}

}  // namespace
}  // namespace mxplan::integers
