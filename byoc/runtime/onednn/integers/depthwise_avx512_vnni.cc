// Depthwise sums of products of 8-bit integers for AVX-512 VNNI.
//
// Four neighbours along a row are what an instruction adds up, so their bytes are brought together:
//
//   pixel 0   a0 a1 a2 ...           a0 b0 c0 d0   a1 b1 c1 d1   ...
//   pixel 1   b0 b1 b2 ...    ->
//   pixel 2   c0 c1 c2 ...           with weights of three columns and a zero beside them
//   pixel 3   d0 d1 d2 ...
//
// which serves every row of dst whose window has the row of src.  Rows of src are copied first,
// with their padding and as unsigned bytes.  Where columns of src are not skipped, neighbours in
// memory are neighbours in dst whatever their channels are, and vectors run through whole rows:
// their weights and numbers come back after a whole number of vectors and of pixels, a period.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/integers/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")
#define MXPLAN_LANES 16
#include "onednn/integers/avx512_vnni_impl.h"
// Behind what they work with.
#include "onednn/integers/result_impl.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kBytes = 64;          // of a vector
constexpr int64_t kWords = 4;           // vectors of words that it becomes
constexpr int64_t kLongestPeriod = 16;  // vectors, beyond what the channels of one pixel take
constexpr int kRowsTogether = 4;        // of dst

using Bytes = __m512i;

MXPLAN_INLINE Bytes Load64(const void* from) { return _mm512_loadu_si512(from); }

// Word i of quarter l of `together[j]` has the bytes of channel 16 l + 4 j + i.
MXPLAN_INLINE void Interleave(const Bytes* pixels, Ints* together) {
  const Bytes low01 = _mm512_unpacklo_epi8(pixels[0], pixels[1]);
  const Bytes high01 = _mm512_unpackhi_epi8(pixels[0], pixels[1]);
  const Bytes low23 = _mm512_unpacklo_epi8(pixels[2], pixels[3]);
  const Bytes high23 = _mm512_unpackhi_epi8(pixels[2], pixels[3]);
  together[0] = reinterpret_cast<Ints>(_mm512_unpacklo_epi16(low01, low23));
  together[1] = reinterpret_cast<Ints>(_mm512_unpackhi_epi16(low01, low23));
  together[2] = reinterpret_cast<Ints>(_mm512_unpacklo_epi16(high01, high23));
  together[3] = reinterpret_cast<Ints>(_mm512_unpackhi_epi16(high01, high23));
}

// Quarter l of vector j and quarter j of vector l change places: channels in their order become
// those of Interleave, and the other way round.
template <typename Vector>
MXPLAN_INLINE void TurnQuarters(Vector* v) {
  const auto at = [&](int i) { return reinterpret_cast<__m512i>(v[i]); };
  const __m512i a = _mm512_shuffle_i32x4(at(0), at(1), 0x44);
  const __m512i b = _mm512_shuffle_i32x4(at(0), at(1), 0xee);
  const __m512i c = _mm512_shuffle_i32x4(at(2), at(3), 0x44);
  const __m512i d = _mm512_shuffle_i32x4(at(2), at(3), 0xee);
  v[0] = reinterpret_cast<Vector>(_mm512_shuffle_i32x4(a, c, 0x88));
  v[1] = reinterpret_cast<Vector>(_mm512_shuffle_i32x4(a, c, 0xdd));
  v[2] = reinterpret_cast<Vector>(_mm512_shuffle_i32x4(b, d, 0x88));
  v[3] = reinterpret_cast<Vector>(_mm512_shuffle_i32x4(b, d, 0xdd));
}

int64_t RoundUp(int64_t bytes) { return (bytes + kBytes - 1) / kBytes * kBytes; }

// A row of dst in vectors.
struct Cut {
  bool through = false;  // whole rows, else the channels of each pixel alone
  int64_t period = 0;    // vectors

  explicit Cut(const Depthwise& g) {
    const Result& result = g.result;
    const bool plain = !IsReal(result.number) && result.output.post_op_count == 0;
    const int64_t pixel = (g.channels + kBytes - 1) / kBytes;
    int64_t vectors = 1;
    while (vectors * kBytes % g.channels != 0) ++vectors;
    through = plain && g.stride_x == 1 && vectors <= std::max(kLongestPeriod, pixel);
    period = through ? vectors : pixel;
  }
};

// Scratch memory of a call.
struct Places {
  int64_t groups;       // of four columns of the window
  int64_t slots;        // rows of src at one time
  int64_t row;          // bytes of one
  int64_t row_weights;  // vectors of a row of the window
  int64_t table;        // vectors of one vector of the period: weights, starts, scales, shifts
  int64_t numbers;      // bytes of those of a period, one behind the other

  Places(const Depthwise& g, const Cut& cut)
      : groups((g.columns + kFour - 1) / kFour),
        slots((kRowsTogether - 1) * g.stride_y + g.rows),
        // Vectors, and columns of a window's last group, reach beyond the last pixel.
        row(RoundUp(((g.dst_width - 1) * g.stride_x + groups * kFour) * g.channels) + kBytes),
        row_weights(groups * kWords),
        table(g.rows * row_weights + 3 * kWords),
        numbers(RoundUp(cut.period * kBytes + g.channels)) {}

  int64_t Padding() const { return slots * row; }
  int64_t Table() const { return Padding() + row; }
  int64_t Numbers(const Cut& cut) const { return Table() + cut.period * table * kBytes; }
  int64_t All(const Cut& cut) const {
    return Numbers(cut) + numbers * static_cast<int64_t>(sizeof(float));
  }
};

int64_t Scratch(const Depthwise& g) {
  const Cut cut(g);
  return Places(g, cut).All(cut) + kBytes;
}

class Image {
 public:
  Image(const Depthwise& g, int64_t image, uint8_t* scratch)
      : g_(g),
        cut_(g),
        places_(g, cut_),
        src_(g.src.data + image * g.height * g.width * g.channels),
        first_(image * g.dst_height * g.dst_width),
        scratch_(scratch + (kBytes - reinterpret_cast<uintptr_t>(scratch) % kBytes) % kBytes),
        zero_(g.src.zero + (g.src.is_signed ? 128 : 0)) {
    std::memset(scratch_ + places_.Padding(), zero_, static_cast<size_t>(places_.row));
    FillTable();
  }

  void Run(int64_t begin, int64_t end) {
    int64_t filled = begin * g_.stride_y - g_.top;  // rows of src
    int64_t row = begin;
    const auto some = [&](auto rows) {
      constexpr int kRows = decltype(rows)::value;
      for (; row + kRows <= end; row += kRows) {
        const int64_t top = row * g_.stride_y - g_.top;
        const int64_t bottom = top + (kRows - 1) * g_.stride_y + g_.rows;
        for (filled = std::max(filled, top); filled < bottom; ++filled) FillRow(filled);
        RunRows<kRows>(row);
      }
    };
    some(std::integral_constant<int, kRowsTogether>());
    some(std::integral_constant<int, 2>());
    some(std::integral_constant<int, 1>());
  }

 private:
  Ints* Table(int64_t vector) const {
    return reinterpret_cast<Ints*>(scratch_ + places_.Table()) + vector * places_.table;
  }

  // `count` numbers of a period, from one for each channel.
  template <typename T>
  void Repeat(const T* channels, T* to) const {
    if (!cut_.through) {
      std::memcpy(to, channels, static_cast<size_t>(g_.channels) * sizeof(T));
      std::memset(to + g_.channels, 0,
                  static_cast<size_t>(cut_.period * kBytes - g_.channels) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < cut_.period * kBytes; i += g_.channels) {
      std::memcpy(to + i, channels, static_cast<size_t>(g_.channels) * sizeof(T));
    }
  }

  void FillTable() {
    uint8_t* numbers = scratch_ + places_.Numbers(cut_);
    const int64_t starts = g_.rows * places_.row_weights;
    for (int64_t v = 0; v < cut_.period; ++v) {
      std::memset(Table(v), 0, static_cast<size_t>(places_.table * kBytes));
    }
    // Columns of a row of the window come one by one, and are then brought together.
    for (int64_t y = 0; y < g_.rows; ++y) {
      for (int64_t group = 0; group < places_.groups; ++group) {
        const int64_t columns = std::min(g_.columns - group * kFour, kFour);
        for (int64_t x = 0; x < columns; ++x) {
          const int64_t at = y * g_.columns + group * kFour + x;
          Repeat(reinterpret_cast<const uint8_t*>(g_.weights) + at * g_.channels, numbers);
          for (int64_t v = 0; v < cut_.period; ++v) {
            Ints* weights = Table(v) + y * places_.row_weights + group * kWords;
            std::memcpy(weights + x, numbers + v * kBytes, kBytes);
          }
        }
        for (int64_t v = 0; v < cut_.period; ++v) {
          Ints* weights = Table(v) + y * places_.row_weights + group * kWords;
          Bytes columns_of[kFour];
          std::memcpy(columns_of, weights, sizeof(columns_of));
          Interleave(columns_of, weights);
          for (int64_t w = 0; w < kWords; ++w) {
            Ints& start = Table(v)[starts + w];
            start = Dot(start, AllOf(0x01010101), weights[w]);
          }
        }
      }
    }
    for (int64_t v = 0; v < cut_.period; ++v) {
      for (int64_t w = 0; w < kWords; ++w) Table(v)[starts + w] *= -zero_;
    }
    if (cut_.through) FillScales(reinterpret_cast<float*>(numbers), starts + kWords);
  }

  // Scales and shifts of a period in the order of sums.
  void FillScales(float* numbers, int64_t at) {
    const Result& result = g_.result;
    const float last_scale = 1.0F / result.dst_scale;
    const auto last_shift = static_cast<float>(result.dst_zero);
    const auto put = [&](int64_t first, float scale, float shift) {
      for (int64_t v = 0; v < cut_.period; ++v) {
        Vec vectors[kWords];
        for (int64_t w = 0; w < kWords; ++w) {
          vectors[w] = Load(numbers + v * kBytes + w * kLanes) * scale + shift;
        }
        TurnQuarters(vectors);
        std::memcpy(Table(v) + first, vectors, sizeof(vectors));
      }
    };
    if (result.scale_per_channel) {
      Repeat(result.scales, numbers);
    } else {
      std::fill(numbers, numbers + cut_.period * kBytes, *result.scales);
    }
    put(at, result.src_scale * last_scale, 0.0F);
    if (result.output.bias) {
      Repeat(result.output.bias, numbers);
    } else {
      std::fill(numbers, numbers + cut_.period * kBytes, 0.0F);
    }
    put(at + kWords, last_scale, last_shift);
  }

  uint8_t* Slot(int64_t row) const {
    const int64_t at = row + g_.top;  // from 0 on
    return scratch_ + at % places_.slots * places_.row;
  }

  bool IsInside(int64_t row) const { return row >= 0 && row < g_.height; }

  const uint8_t* Row(int64_t row) const {
    return IsInside(row) ? Slot(row) : scratch_ + places_.Padding();
  }

  void FillRow(int64_t row) const {
    if (!IsInside(row)) return;
    const int64_t before = g_.left * g_.channels;
    const int64_t count = std::min(g_.width * g_.channels, places_.row - before);
    const uint8_t* from = src_ + row * g_.width * g_.channels;
    uint8_t* to = Slot(row);
    std::memset(to, zero_, static_cast<size_t>(before));
    if (g_.src.is_signed) {
      for (int64_t i = 0; i < count; ++i) to[before + i] = from[i] ^ 0x80;
    } else {
      std::memcpy(to + before, from, static_cast<size_t>(count));
    }
    std::memset(to + before + count, zero_, static_cast<size_t>(places_.row - before - count));
  }

  template <int kRows>
  void RunRows(int64_t row) const {
    const uint8_t* rows[64];
    const int64_t count = (kRows - 1) * g_.stride_y + g_.rows;
    for (int64_t i = 0; i < count; ++i) rows[i] = Row(row * g_.stride_y - g_.top + i);
    if (g_.rows == 3 && g_.columns <= kFour && g_.stride_y == 1) {
      Vectors<kRows, 3, 1>(row, rows);
    } else if (g_.rows == 3 && g_.columns <= kFour && g_.stride_y == 2) {
      Vectors<kRows, 3, 2>(row, rows);
    } else {
      Vectors<kRows, 0, 0>(row, rows);
    }
  }

  // kWindow and kStride are the window's rows and the stride of rows where they are known.
  template <int kRows, int kWindow, int kStride>
  void Vectors(int64_t row, const uint8_t* const* rows) const {
    const int64_t width = g_.dst_width * g_.channels;
    const int64_t first = (first_ + row * g_.dst_width) * g_.channels;
    Ints sums[kRows][kWords];
    if (cut_.through) {
      int64_t v = 0;
      for (int64_t at = 0; at < width; at += kBytes) {
        const Ints* table = Table(v);
        if (++v == cut_.period) v = 0;
        Sum<kRows, kWindow, kStride>(rows, at, table, sums);
        const int64_t count = std::min(width - at, kBytes);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          WriteThrough(table + places_.table - 2 * kWords, sums[r], first + r * width + at, count);
        }
      }
      return;
    }
    for (int64_t v = 0; v < cut_.period; ++v) {
      const int64_t channel = v * kBytes, count = std::min(g_.channels - channel, kBytes);
      const Panel<kWords> panel(g_.result, channel, count, g_.rows * g_.columns);
      for (int64_t x = 0; x < g_.dst_width; ++x) {
        const int64_t at = x * g_.channels + channel;
        Sum<kRows, kWindow, kStride>(rows, at + x * (g_.stride_x - 1) * g_.channels, Table(v),
                                     sums);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          TurnQuarters(sums[r]);
          Tile<1, kWords>{g_.result, panel, first + r * width + at}.Write(sums[r]);
        }
      }
    }
  }

  template <int kRows, int kWindow, int kStride>
  MXPLAN_INLINE void Sum(const uint8_t* const* rows, int64_t at, const Ints* table,
                         Ints (*sums)[kWords]) const {
    const Ints* start = table + places_.table - 3 * kWords;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int w = 0; w < kWords; ++w) sums[r][w] = start[w];
    }
    if constexpr (kWindow > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < (kRows - 1) * kStride + kWindow; ++i) {
        Ints together[kWords];
        Four(rows[i] + at, together);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const int y = i - r * kStride;
          if (y < 0 || y >= kWindow) continue;
#pragma GCC unroll 4
          for (int w = 0; w < kWords; ++w) {
            sums[r][w] = Dot(sums[r][w], together[w], table[y * kWords + w]);
          }
        }
      }
    } else {
      for (int64_t i = 0; i < (kRows - 1) * g_.stride_y + g_.rows; ++i) {
        for (int64_t group = 0; group < places_.groups; ++group) {
          Ints together[kWords];
          Four(rows[i] + at + group * kFour * g_.channels, together);
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            const int64_t y = i - r * g_.stride_y;
            if (y < 0 || y >= g_.rows) continue;
            const Ints* weights = table + y * places_.row_weights + group * kWords;
#pragma GCC unroll 4
            for (int w = 0; w < kWords; ++w) {
              sums[r][w] = Dot(sums[r][w], together[w], weights[w]);
            }
          }
        }
      }
    }
  }

  MXPLAN_INLINE void Four(const uint8_t* from, Ints* together) const {
    const Bytes pixels[kFour] = {Load64(from), Load64(from + g_.channels),
                                 Load64(from + 2 * g_.channels), Load64(from + 3 * g_.channels)};
    Interleave(pixels, together);
  }

  // In the order of sums; packing brings bytes into that of channels.
  MXPLAN_INLINE void WriteThrough(const Ints* scales, const Ints* sums, int64_t at,
                                  int64_t count) const {
    const bool is_signed = g_.result.number == Number::kSigned;
    const Vec most = Broadcast(is_signed ? 127.0F : 255.0F);
    __m512i words[kWords];
#pragma GCC unroll 4
    for (int w = 0; w < kWords; ++w) {
      const Vec scale = reinterpret_cast<Vec>(scales[w]);
      const Vec shift = reinterpret_cast<Vec>(scales[kWords + w]);
      const Vec x = __builtin_convertvector(sums[w], Vec) * scale + shift;
      words[w] = reinterpret_cast<__m512i>(Nearest(Min(x, most)));
    }
    const __m512i low = _mm512_packs_epi32(words[0], words[1]);
    const __m512i high = _mm512_packs_epi32(words[2], words[3]);
    const __m512i bytes =
        is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    auto* to = static_cast<uint8_t*>(g_.result.dst) + at;
    if (count == kBytes) {
      _mm512_storeu_si512(to, bytes);
    } else {
      _mm512_mask_storeu_epi8(to, FirstOf(count), bytes);
    }
  }

  const Depthwise& g_;
  Cut cut_;
  Places places_;
  const uint8_t* src_;
  int64_t first_;  // pixel of dst
  uint8_t* scratch_;
  int32_t zero_;
};

void RunDepthwise(const Depthwise& product, int64_t image, int64_t begin, int64_t end,
                  uint8_t* scratch) {
  Image(product, image, scratch).Run(begin, end);
}

}  // namespace

DepthwiseKernel Avx512VnniDepthwise() { return {"integers_dw:avx512_vnni", Scratch, RunDepthwise}; }

}  // namespace mxplan::integers
