// Products by AMX; included behind lanes_impl.h by files that name an instruction set with tiles.
//
// A tile is 16 rows of 64 bytes.  Of eight of them, four are sums of 32 rows and 32 columns, two
// are rows of the left operand, read where they stand at any one distance, and two are weights,
// packed so that a row of a tile has the numbers that 16 columns multiply with the same four bytes
// of the left operand: blocks of [steps][16 words of a step][16 columns][4 bytes].
//
//   sums[row][column] = start[column] + sum over steps of left[row][step] . weights[column][step]
//
// A type multiplies by
//
//   static void Low(), LowNext(), High(), HighNext()   for tiles 0 to 3 of sums, as Multiply does
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_AMX_AMX_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_AMX_AMX_IMPL_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "onednn/vectors/lanes_impl.h"

namespace mxplan::amx {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kStep = 64;                        // bytes of the left operand's rows
constexpr int64_t kStepOfBlock = kTileRows * kStep;  // bytes of the weights of 16 columns
constexpr int64_t kMostRows = 2 * kTileRows;         // that are multiplied together
constexpr int64_t kSumBytes = 64;                    // of 16 columns

// Rows of the left operand, in two halves which may stand apart.
struct Rows {
  const uint8_t* from[2] = {};
  int64_t count[2] = {};
  int64_t stride = 0;  // bytes from a row to the next
};

// The places of a row's steps: first groups of those that are read where they stand, then copies.
struct Steps {
  int64_t groups = 1, group = 0;    // bytes from a group to the next
  int64_t of_group = 0;             // steps that follow each other
  int64_t width = kStep;            // bytes of each, a multiple of 4
  const uint8_t* copies = nullptr;  // [rows][copied][kStep], of the rows of both halves
  int64_t copied = 0;
};

// The compiler does not know that tiles read what it has written to where `data` points.
MXPLAN_INLINE void Written(const void* data) { __asm__ volatile("" : : "r"(data) : "memory"); }

// The registers of this thread, from their first use to the end of the scope.
class Tiles {
 public:
  Tiles() = default;
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  ~Tiles() {
    if (rows_[0] > 0) _tile_release();
  }

  // For so many rows of both halves, the second of which may have none, and steps of `width` bytes.
  MXPLAN_INLINE void Take(const Rows& rows, int64_t width) {
    if (rows.count[0] == rows_[0] && rows.count[1] == rows_[1] && width == width_) return;
    rows_[0] = rows.count[0];
    rows_[1] = rows.count[1];
    width_ = width;
    Configure();
  }

 private:
  enum Register : size_t { kSums = 0, kLeft = 4, kWeights = 6 };

  __attribute__((noinline)) void Configure() const {
    struct alignas(64) {
      uint8_t palette = 1, begin = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } wanted;
    const auto set = [&](size_t tile, int64_t rows, int64_t bytes) {
      wanted.rows[tile] = static_cast<uint8_t>(rows);
      wanted.bytes[tile] = static_cast<uint16_t>(bytes);
    };
    for (size_t half = 0; half < 2; ++half) {
      const int64_t rows = std::max<int64_t>(rows_[half], 1);
      for (size_t column = 0; column < 2; ++column) set(kSums + 2 * half + column, rows, kSumBytes);
      set(kLeft + half, rows, width_);
      set(kWeights + half, width_ / 4, kSumBytes);
    }
    Written(&wanted);
    _tile_loadconfig(&wanted);
  }

  int64_t rows_[2] = {0, 0};
  int64_t width_ = 0;
};

// A step of all rows by those of one or two blocks of columns.
template <typename Product, bool kTwoHalves, bool kTwoBlocks>
MXPLAN_INLINE void AddStep(const uint8_t* first, const uint8_t* second, int64_t stride,
                           const uint8_t* weights, int64_t block) {
  _tile_loadd(6, weights, kSumBytes);
  _tile_loadd(4, first, stride);
  Product::Low();
  if constexpr (kTwoBlocks) {
    _tile_loadd(7, weights + block, kSumBytes);
    Product::LowNext();
  }
  if constexpr (kTwoHalves) {
    _tile_loadd(5, second, stride);
    Product::High();
    if constexpr (kTwoBlocks) Product::HighNext();
  }
}

// Tiles 0 to 3 before the first step: `start`, the same for all rows, or zeros where it is null.
template <bool kTwoHalves, bool kTwoBlocks>
MXPLAN_INLINE void Begin(const uint8_t* start) {
  if (start == nullptr) {
    _tile_zero(0);
    if constexpr (kTwoBlocks) _tile_zero(1);
    if constexpr (kTwoHalves) _tile_zero(2);
    if constexpr (kTwoHalves && kTwoBlocks) _tile_zero(3);
    return;
  }
  _tile_loadd(0, start, 0);
  if constexpr (kTwoBlocks) _tile_loadd(1, start + kSumBytes, 0);
  if constexpr (kTwoHalves) _tile_loadd(2, start, 0);
  if constexpr (kTwoHalves && kTwoBlocks) _tile_loadd(3, start + kSumBytes, 0);
}

// Sums of one or two blocks of columns; `stride`: bytes from a row of sums to the next.
template <typename Product, bool kTwoHalves, bool kTwoBlocks>
MXPLAN_INLINE void MultiplyBlocks(const Rows& rows, const Steps& steps, const uint8_t* weights,
                                  int64_t block, const void* start, uint8_t* sums, int64_t stride) {
  Begin<kTwoHalves, kTwoBlocks>(static_cast<const uint8_t*>(start));
  for (int64_t group = 0; group < steps.groups; ++group) {
    const uint8_t* first = rows.from[0] + group * steps.group;
    const uint8_t* second = rows.from[1] + group * steps.group;
    for (int64_t step = 0; step < steps.of_group; ++step) {
      AddStep<Product, kTwoHalves, kTwoBlocks>(first + step * kStep, second + step * kStep,
                                               rows.stride, weights, block);
      weights += kStepOfBlock;
    }
  }
  const int64_t copy = steps.copied * kStep;
  for (int64_t step = 0; step < steps.copied; ++step) {
    const uint8_t* first = steps.copies + step * kStep;
    AddStep<Product, kTwoHalves, kTwoBlocks>(first, first + rows.count[0] * copy, copy, weights,
                                             block);
    weights += kStepOfBlock;
  }
  _tile_stored(0, sums, stride);
  if constexpr (kTwoBlocks) _tile_stored(1, sums + kSumBytes, stride);
  if constexpr (kTwoHalves) {
    uint8_t* next = sums + rows.count[0] * stride;
    _tile_stored(2, next, stride);
    if constexpr (kTwoBlocks) _tile_stored(3, next + kSumBytes, stride);
  }
}

// Sums of all rows and `kBlocks` blocks of 16 columns, one row behind the other.
// `start`: a number for each column.
template <typename Product, int kBlocks>
MXPLAN_INLINE void Multiply(Tiles* tiles, const Rows& rows, const Steps& steps,
                            const uint8_t* weights, int64_t block, const void* start, void* sums) {
  tiles->Take(rows, steps.width);
  Written(start);
  const auto multiply = [&](auto two_blocks, int64_t first) {
    const auto* begin = static_cast<const uint8_t*>(start) + first * kSumBytes;
    uint8_t* to = static_cast<uint8_t*>(sums) + first * kSumBytes;
    const uint8_t* there = weights + first * block;
    if (rows.count[1] > 0) {
      MultiplyBlocks<Product, true, two_blocks>(rows, steps, there, block, begin, to,
                                                kBlocks * kSumBytes);
    } else {
      MultiplyBlocks<Product, false, two_blocks>(rows, steps, there, block, begin, to,
                                                 kBlocks * kSumBytes);
    }
  };
  for (int64_t first = 0; first + 1 < kBlocks; first += 2) multiply(std::true_type(), first);
  if constexpr (kBlocks % 2 != 0) multiply(std::false_type(), kBlocks - 1);
}

// Copies `bytes` to the next place of steps, with zeros behind them up to the next 64: what is
// copied behind that writes over them.
MXPLAN_INLINE uint8_t* Copy(const uint8_t* from, int64_t bytes, uint8_t* to) {
  uint8_t* const end = to + bytes;
  for (; bytes >= kStep; bytes -= kStep, from += kStep, to += kStep) {
    std::memcpy(to, from, kStep);
  }
  if (bytes > 0) {
    const __m512i rest = _mm512_maskz_loadu_epi8((1ULL << bytes) - 1, from);
    _mm512_storeu_si512(to, rest);
  }
  return end;
}

}  // namespace
}  // namespace mxplan::amx

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_AMX_AMX_IMPL_H_
