// The kernel of onednn/grouped_product/kernels.h over vectors of MXPLAN_LANES floats; included once
// for each instruction set.  Everything is in an unnamed namespace.
#include "onednn/grouped_product/kernels.h"
#include "onednn/post_ops/finish_impl.h"
#define MXPLAN_DEPTH_AT_ONCE 4
#include "onednn/vectors/tile_impl.h"

namespace mxplan::grouped_product {
namespace {

constexpr int kVectors = kStrip / kLanes;  // of a strip
// Sums of a tile fill the registers but for the vectors of a matrix.
constexpr int kTileStrips = kLanes == 16 ? 2 : 1;
constexpr int kMostRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 2;
constexpr int64_t kTile = kTileStrips * kStrip;
constexpr int64_t kDepth = 192;  // numbers of a row that are summed before other rows'

// Adds rows times some numbers of the depth to the sums [kRows, kTile], or begins them.
template <int kRows, int kStrips>
__attribute__((noinline)) void Add(const float* src, int64_t depth, const float* strips,
                                   int64_t count, bool begins, float* sums) {
  static_assert(kLanes == 16 || kStrips == 1, "two strips are two vectors");
  const TileSteps steps = {depth, 1, kStrip, kStrips == 2 ? depth * kStrip : kLanes, kTile};
  AddToTile<kRows, kStrips * kVectors>(src, strips, steps, count, begins, sums);
}

using AddRows = void (*)(const float* src, int64_t depth, const float* strips, int64_t count,
                         bool begins, float* sums);

template <int kStrips, int... kRows>
MXPLAN_INLINE AddRows AddOf(int64_t rows, std::integer_sequence<int, kRows...>) {
  constexpr AddRows kFunctions[] = {Add<kRows + 1, kStrips>...};
  return kFunctions[rows - 1];
}

MXPLAN_INLINE AddRows AddFor(int64_t rows, int64_t strips) {
  constexpr auto kRows = std::make_integer_sequence<int, kMostRows>();
  return strips == kTileStrips ? AddOf<kTileStrips>(rows, kRows) : AddOf<1>(rows, kRows);
}

// A tile's width of the matrix stays in the nearest cache while all rows of the part meet a depth.
inline void Run(const Product& p, const Part& part) {
  float sums[kBlock * kTile] = {};
  const int64_t rows = part.end_row - part.first_row;
  const int64_t tiles = (rows + kMostRows - 1) / kMostRows;
  const int64_t strips = (p.columns + kStrip - 1) / kStrip;
  for (int64_t column = part.first_column; column < part.end_column; column += kTile) {
    const int64_t strip = column / kStrip, wide = Least(kTileStrips, strips - strip);
    const int64_t depth = part.group < 0 ? 0 : p.depth;  // sums of none stay 0
    const float* matrix = p.strips + (part.group * strips + strip) * depth * kStrip;
    for (int64_t k = 0; k < depth; k += kDepth) {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t first = rows * tile / tiles, here = rows * (tile + 1) / tiles - first;
        const float* src = p.src + (part.first_row + first) * p.depth + k;
        AddFor(here, wide)(src, p.depth, matrix + k * kStrip, Least(kDepth, depth - k), k == 0,
                           sums + first * kTile);
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < wide * kStrip; i += kLanes) {
        Finish(p, part.first_row + row, column + i, Load(sums + row * kTile + i));
      }
    }
  }
}

}  // namespace
}  // namespace mxplan::grouped_product
