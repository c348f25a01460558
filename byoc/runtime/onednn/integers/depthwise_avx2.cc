// Depthwise sums of products of 8-bit integers for AVX2.
//
// Two neighbours along a row are what an instruction adds up.  Rows of src are copied with their
// padding, each number beside its neighbour's as words:
//
//   pixel 0   a0 a1 a2 ...           a0 b0   a1 b1   a2 b2   ...
//   pixel 1   b0 b1 b2 ...    ->     b0 c0   b1 c1   b2 c2   ...
//   pixel 2   c0 c1 c2 ...
//
// which serves every window that has these two columns.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "onednn/integers/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/integers/avx2_impl.h"
// Behind what they work with.
#include "onednn/integers/result_impl.h"
#include "onednn/vectors/counts_impl.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kLine = 64;      // bytes that places begin at multiples of
constexpr int64_t kTwo = 2;        // columns of a window
constexpr int64_t kRowsOfDst = 4;  // whose rows of src are there at one time
constexpr int kVectors = 2;        // of channels
constexpr int64_t kChannels = kVectors * kLanes;
constexpr int kPixelsTogether = 4;
constexpr int kStored = 2;  // pixels whose bytes fill a vector

using Channels = Panel<kVectors>;

int64_t RoundUp(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Scratch memory of a call.
struct Places {
  int64_t panels, pairs;  // of channels, and of columns of the window
  int64_t slots;          // rows of src at one time
  int64_t count;          // pairs of numbers of a row
  int64_t row;            // bytes of them
  int64_t bytes;          // of a row as it is copied first

  explicit Places(const Depthwise& g)
      : panels((g.channels + kChannels - 1) / kChannels),
        pairs((g.columns + kTwo - 1) / kTwo),
        slots((kRowsOfDst - 1) * g.stride_y + g.rows),
        // Vectors reach beyond the last pixel.
        count(RoundUp(((g.dst_width - 1) * g.stride_x + pairs * kTwo) * g.channels + kChannels)),
        row(count * kFour),
        bytes(RoundUp(count + g.channels)) {}

  int64_t Padding() const { return slots * row; }
  int64_t Copy() const { return Padding() + row; }
  int64_t Weights() const { return Copy() + bytes; }
  int64_t Numbers(const Depthwise& g) const {
    const int64_t each = g.rows * pairs * kVectors * static_cast<int64_t>(sizeof(Ints));
    return RoundUp(Weights() + panels * each);
  }
  int64_t All(const Depthwise& g) const {
    return Numbers(g) + panels * static_cast<int64_t>(sizeof(Channels));
  }
};

int64_t Scratch(const Depthwise& g) { return Places(g).All(g) + kLine; }

class Image {
 public:
  Image(const Depthwise& g, int64_t image, uint8_t* scratch)
      : g_(g),
        places_(g),
        src_(g.src.data + image * g.height * g.width * g.channels),
        first_(image * g.dst_height * g.dst_width),
        scratch_(scratch + (kLine - reinterpret_cast<uintptr_t>(scratch) % kLine) % kLine) {
    std::memset(scratch_ + places_.Padding(), 0, static_cast<size_t>(places_.row));
    for (int64_t p = 0; p < places_.panels; ++p) {
      const int64_t channel = p * kChannels, count = std::min(g.channels - channel, kChannels);
      new (&NumbersOf(p)) Channels(g.result, channel, count, g.rows * g.columns);
      FillWeights(p, count);
    }
  }

  void Run(int64_t begin, int64_t end) {
    int64_t filled = begin * g_.stride_y - g_.top;  // rows of src
    for (int64_t row = begin; row < end; row += kRowsOfDst) {
      const int64_t rows = std::min(kRowsOfDst, end - row), top = row * g_.stride_y - g_.top;
      const int64_t bottom = top + (rows - 1) * g_.stride_y + g_.rows;
      for (filled = std::max(filled, top); filled < bottom; ++filled) FillRow(filled);
      for (int64_t p = 0; p < places_.panels; ++p) {
        for (int64_t r = row; r < row + rows; ++r) RunRow(p, r);
      }
    }
  }

 private:
  Channels& NumbersOf(int64_t panel) const {
    return reinterpret_cast<Channels*>(scratch_ + places_.Numbers(g_))[panel];
  }

  // [rows][pairs][kVectors]
  Ints* WeightsOf(int64_t panel) const {
    return reinterpret_cast<Ints*>(scratch_ + places_.Weights()) +
           panel * g_.rows * places_.pairs * kVectors;
  }

  // Two columns of one channel in each word; 0 beside the last one of an odd number.
  void FillWeights(int64_t panel, int64_t count) const {
    for (int64_t y = 0; y < g_.rows; ++y) {
      for (int64_t pair = 0; pair < places_.pairs; ++pair) {
        int16_t numbers[kTwo * kChannels] = {};
        for (int64_t x = pair * kTwo; x < std::min(g_.columns, (pair + 1) * kTwo); ++x) {
          const int8_t* from = g_.weights + (y * g_.columns + x) * g_.channels + panel * kChannels;
          for (int64_t i = 0; i < count; ++i) numbers[i * kTwo + x % kTwo] = from[i];
        }
        Ints* to = WeightsOf(panel) + (y * places_.pairs + pair) * kVectors;
        std::memcpy(to, numbers, sizeof(numbers));
      }
    }
  }

  uint8_t* Slot(int64_t row) const {
    return scratch_ + (row + g_.top) % places_.slots * places_.row;
  }

  bool IsInside(int64_t row) const { return row >= 0 && row < g_.height; }

  const uint8_t* Row(int64_t row) const {
    return IsInside(row) ? Slot(row) : scratch_ + places_.Padding();
  }

  void FillRow(int64_t row) const {
    if (!IsInside(row)) return;
    const auto zero = static_cast<uint8_t>(g_.src.zero);
    const int64_t before = g_.left * g_.channels;
    const int64_t count = std::min(g_.width * g_.channels, places_.bytes - before);
    uint8_t* copy = scratch_ + places_.Copy();
    std::memset(copy, zero, static_cast<size_t>(before));
    std::memcpy(copy + before, src_ + row * g_.width * g_.channels, static_cast<size_t>(count));
    std::memset(copy + before + count, zero, static_cast<size_t>(places_.bytes - before - count));
    if (g_.src.is_signed) {
      Pair<true>(copy, Slot(row));
    } else {
      Pair<false>(copy, Slot(row));
    }
  }

  template <bool kSigned>
  void Pair(const uint8_t* from, uint8_t* to) const {
    const __m256i zeros = _mm256_set1_epi16(static_cast<int16_t>(g_.src.zero));
    const auto put = [&](uint8_t* at, __m128i bytes) {
      const __m256i words = kSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
      _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_sub_epi16(words, zeros));
    };
    for (int64_t i = 0; i < places_.count; i += kChannels) {
      const __m128i here = Load16(from + i), there = Load16(from + i + g_.channels);
      put(to + i * kFour, _mm_unpacklo_epi8(here, there));
      put(to + (i + kLanes) * kFour, _mm_unpackhi_epi8(here, there));
    }
  }

  // A row of dst of one panel's channels.
  void RunRow(int64_t panel, int64_t row) const {
    const uint8_t* rows[kMostWindowRows];
    for (int64_t y = 0; y < g_.rows; ++y) {
      rows[y] = Row(row * g_.stride_y - g_.top + y) + panel * kChannels * kFour;
    }
    const Channels& channels = NumbersOf(panel);
    if (channels.IsPlain()) {
      Pixels<true>(rows, WeightsOf(panel), channels, row);
    } else {
      Pixels<false>(rows, WeightsOf(panel), channels, row);
    }
  }

  template <bool kPlain>
  void Pixels(const uint8_t* const* rows, const Ints* weights, const Channels& channels,
              int64_t row) const {
    const int64_t dst = (first_ + row * g_.dst_width) * g_.channels + channels.channel;
    int64_t x = 0;
    for (; x + kPixelsTogether <= g_.dst_width; x += kPixelsTogether) {
      Some<kPlain, kPixelsTogether>(rows, weights, channels, x, dst);
    }
    for (; x < g_.dst_width; ++x) Some<kPlain, 1>(rows, weights, channels, x, dst);
  }

  // Both loops stay loops: unrolled, sums would not stay in registers.
  template <bool kPlain, int kPixels>
  MXPLAN_INLINE void Some(const uint8_t* const* rows, const Ints* weights, const Channels& channels,
                          int64_t x, int64_t dst) const {
    const int64_t pixel = g_.channels * kFour, step = g_.stride_x * pixel;
    const Ints* factors = weights;
    Ints sums[kPixels][kVectors] = {};
#pragma GCC unroll 1
    for (int64_t y = 0; y < g_.rows; ++y) {
      const uint8_t* from = rows[y] + x * step;
#pragma GCC unroll 1
      for (int64_t pair = 0; pair < places_.pairs; ++pair) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
          for (int p = 0; p < kPixels; ++p) {
            const Ints numbers = LoadWords(from + p * step + v * kLanes * kFour);
            sums[p][v] = Dot(sums[p][v], numbers, factors[v]);
          }
        }
        factors += kVectors;
        from += kTwo * pixel;
      }
    }
    constexpr int kTogether = std::min(kPixels, kStored);
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; p += kTogether) {
      const int64_t at = dst + (x + p) * g_.channels;
      const Tile<kTogether, kVectors> tile{g_.result, channels, at};
      if constexpr (kPlain) {
        tile.WritePlain(sums[p]);
      } else {
        tile.Write(sums[p]);
      }
    }
  }

  const Depthwise& g_;
  Places places_;
  const uint8_t* src_;
  int64_t first_;  // pixel of dst
  uint8_t* scratch_;
};

void RunDepthwise(const Depthwise& product, int64_t image, int64_t begin, int64_t end,
                  uint8_t* scratch) {
  Image(product, image, scratch).Run(begin, end);
}

}  // namespace

DepthwiseKernel Avx2Depthwise() { return {"integers_dw:avx2_words", Scratch, RunDepthwise}; }

}  // namespace mxplan::integers
