// Dense sums; included behind result_impl.h, once for each instruction set.
#include "onednn/vectors/counts_impl.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kBytesTogether = 128 << 10;  // of src and dst
constexpr int64_t kPixelsTogether = 48;        // at least: each time a panel begins costs one more
constexpr int64_t kLine = 64;                  // bytes of one in a cache
constexpr int64_t kVectorsOfBlock = kLane / kLanes;
constexpr int64_t kFactors = kLanes * kNumbers;  // that are loaded together

// The weights of a panel, which begins with a block, at a depth of a window's row.
template <int kVectors>
struct Weights {
  const int8_t* data;
  int64_t block;
  MXPLAN_INLINE Ints operator()(int64_t group, int v) const {
    const int64_t place = group * kVectorsOfBlock + v % kVectorsOfBlock;
    return LoadFactors(data + v / kVectorsOfBlock * block + place * kFactors);
  }
  MXPLAN_INLINE Weights OfRow(const Dense& product, int64_t row) const {
    return {data + row * product.weights_row, block};
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

// Sums begin with the zero point's part taken off: bytes are read as unsigned, with 128 added to
// signed ones.
template <int kVectors>
MXPLAN_INLINE void Start(const Dense& product, const Weights<kVectors>& weights, Ints* start) {
  for (int v = 0; v < kVectors; ++v) start[v] = Ints{};
  const int32_t zero = product.src.zero + (product.src.is_signed ? 128 : 0);
  if (zero == 0) return;
  const Ints ones = AllOf(0x01010101);
  for (int64_t row = 0; row < product.rows; ++row) {
    const Weights<kVectors> there = weights.OfRow(product, row);
    for (int64_t group = 0; group * kFour < product.depth; ++group) {
      for (int v = 0; v < kVectors; ++v) start[v] = Dot(start[v], ones, there(group, v));
    }
  }
  for (int v = 0; v < kVectors; ++v) start[v] *= -zero;
}

template <int kVectors>
struct PanelOfPixels {
  const Dense& product;
  Weights<kVectors> weights;
  Panel<kVectors> panel;
  Ints start[kVectors];
  // The next panel's weights, which stand behind this one's: nobody sees them coming but this loop.
  const int8_t* ahead = nullptr;
  int64_t asked = 0;  // bytes for each tile

  MXPLAN_INLINE PanelOfPixels(const Dense& p, int64_t first, int64_t count)
      : product(p),
        weights{p.weights + first / kLane * p.weights_block, p.weights_block},
        panel(p.result, first, count, p.rows * (p.depth + kFour)) {
    Start(p, weights, start);
  }

  // kPixels of a line.
  template <int kPixels, bool kSigned, bool kPlain>
  __attribute__((noinline)) void Some(const uint8_t* src, int64_t to) {
    for (const int8_t* end = ahead + asked; ahead < end; ahead += kLine) {
      __builtin_prefetch(ahead, 0, 2);
    }
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
      const int64_t there = line - product.first_line;
      const uint8_t* src = product.src.data + there / product.lines * product.src_image +
                           there % product.lines * product.src_line + at * product.src_pixel;
      const int64_t dst = begin * product.result.pixel + panel.channel;
      InParts<kPixels>(count, [&](auto pixels, int64_t first) {
        Some<pixels, kSigned, kPlain>(src + first * product.src_pixel,
                                      dst + first * product.result.pixel);
      });
      begin += count;
    }
  }
};

template <int kVectors>
inline void RunPanel(const Dense& product, int64_t begin, int64_t end, int64_t channel,
                     int64_t channels) {
  // Sums and the weights and numbers that they meet fill the registers.
  constexpr int kPixels = kPixelsBy[kVectors];
  PanelOfPixels<kVectors> panel(product, channel, channels);
  const int64_t bytes = (channels + kLane - 1) / kLane * product.weights_block;
  if (channel + channels < product.channels) {
    panel.ahead = panel.weights.data + bytes;
    panel.asked = (bytes * kPixels / (end - begin) + kLine - 1) / kLine * kLine;
  }
  if constexpr (kNumbers == kFour) {  // words have their signs
    if (product.src.is_signed) return panel.template Lines<kPixels, true, false>(begin, end);
  }
  if (panel.panel.IsPlain()) {
    panel.template Lines<kPixels, false, true>(begin, end);
  } else {
    panel.template Lines<kPixels, false, false>(begin, end);
  }
}

// Every panel of some pixels, which stay in cache meanwhile.
inline void RunDense(const Dense& product, int64_t begin, int64_t end, int64_t first_channel,
                     int64_t channels) {
  constexpr int64_t kMost = kMostVectors / kVectorsOfBlock;
  const int64_t blocks = (channels + kLane - 1) / kLane;
  const int64_t panels = (blocks + kMost - 1) / kMost;  // of about the same number of blocks
  const int64_t bytes = std::min(product.depth, product.src_pixel) + product.result.pixel;
  const int64_t together = std::max(kBytesTogether / bytes, kPixelsTogether);
  // Of about the same number of pixels: for each part all weights are read.
  const int64_t parts = std::max<int64_t>((end - begin + together / 2) / together, 1);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t from = begin + (end - begin) * part / parts;
    const int64_t to = begin + (end - begin) * (part + 1) / parts;
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t first = blocks * p / panels * kLane;
      const int64_t last = std::min(blocks * (p + 1) / panels * kLane, channels);
      WithConstant<kMostVectors>((last - first + kLanes - 1) / kLanes, [&](auto some) {
        RunPanel<some>(product, from, to, first_channel + first, last - first);
      });
    }
  }
}

}  // namespace
}  // namespace mxplan::integers
