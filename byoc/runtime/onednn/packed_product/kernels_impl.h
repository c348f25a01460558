// The kernel of onednn/packed_product/kernels.h over vectors of MXPLAN_LANES; included by a file
// that names the instruction set.  Everything is in an unnamed namespace, so that the linker never
// takes one set's code for another's.
#include "onednn/packed_product/kernels.h"
#include "onednn/post_ops/apply_impl.h"
#include "onednn/vectors/numbers_impl.h"
#define MXPLAN_DEPTH_AT_ONCE 4  // transformers took a tenth longer by 1
#include "onednn/vectors/tile_impl.h"

namespace mxplan::packed_product {
namespace {

static_assert(kStrip == kLanes, "a strip is as wide as a vector");
constexpr int64_t kVectors = kPanel / kLanes;
constexpr int64_t kDepth = 256;  // numbers of a row that are summed before other rows'
constexpr int64_t kLine = 16;    // numbers in a line of a cache
constexpr int64_t kBlock = 124;  // rows that meet a panel before the next one: whole tiles

// One vector of results, or the columns of it that there are.
template <bool kWhole>
MXPLAN_INLINE void Finish(const Product& product, Vec x, int64_t row, int64_t column,
                          Some<kWhole> some) {
  const int64_t at = row * product.columns + column;
  const post_ops::Output& output = product.output;
  if (output.bias) x += some.From(output.bias + column);
  for (int op = 0; op < output.post_op_count; ++op) {
    const PostOp& post_op = output.post_ops[op];
    Vec other = {};
    if (post_op.code == PostOp::Code::kSum) other = some.From(product.dst + at);
    if (post_op.data) other = some.From(post_op.data + (post_op.per_channel ? column : at));
    x = Apply(post_op, x, other);
  }
  some.To(product.dst + at, x);
}

// Adds rows times a part of a panel to the sums of a tile, or begins them; of its strips as
// many as have columns.
template <int kRows, int kWide>
__attribute__((noinline)) void Add(const float* src, int64_t depth, const float* strips,
                                   int64_t count, bool begins, float* tile) {
  const TileSteps steps = {depth, 1, kStrip, depth * kStrip, kPanel};
  AddToTile<kRows, kWide>(src, strips, steps, count, begins, tile);
}

using AddRows = void (*)(const float* src, int64_t depth, const float* strips, int64_t count,
                         bool begins, float* tile);
// By rows, then by vectors.
constexpr AddRows kAddRows[kTile][kVectors] = {{Add<1, 1>, Add<1, 2>, Add<1, 3>},
                                               {Add<2, 1>, Add<2, 2>, Add<2, 3>},
                                               {Add<3, 1>, Add<3, 2>, Add<3, 3>},
                                               {Add<4, 1>, Add<4, 2>, Add<4, 3>}};

inline void FinishTile(const Product& product, const float* tile, int64_t row, int64_t rows,
                       int64_t column) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t left = product.columns - column, count = left < kPanel ? left : kPanel;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      Finish(product, Load(tile + r * kPanel + i), row + r, column + i, Some<true>{kLanes});
    }
    if (i < count) {
      const Some<false> rest{count - i};
      Finish(product, Load(tile + r * kPanel + i), row + r, column + i, rest);
    }
  }
}

// Of the panel behind one, which comes from memory, the share that is fetched beside a tile.
inline void FetchNext(const Product& product, const float* panel, int64_t share, int64_t shares) {
  const int64_t numbers = product.depth * kPanel, lines = numbers / kLine;
  const float* next = panel + numbers;
  const int64_t end = lines * (share + 1) / shares;
  for (int64_t i = lines * share / shares; i < end; ++i) __builtin_prefetch(next + i * kLine, 0, 2);
}

// Asks for the lines of a tile's results while it is summed: a write that waits for memory holds up
// those behind it.
inline void FetchResults(const Product& product, int64_t row, int64_t rows, int64_t column) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* results = product.dst + (row + r) * product.columns + column;
    __builtin_prefetch(results, 1, 3);
    __builtin_prefetch(results + kPanel - 1, 1, 3);
  }
}

// A panel's part of one depth stays in the nearest cache while all rows of a block meet it.
inline void Run(const Product& product, const Part& part) {
  float sums[kBlock * kPanel];
  const int64_t depths = product.depth / kDepth + 1;
  for (int64_t begin = part.first_row; begin < part.end_row; begin += kBlock) {
    const int64_t rows = begin + kBlock < part.end_row ? kBlock : part.end_row - begin;
    const int64_t tiles = (rows + kTile - 1) / kTile;
    for (int64_t column = part.first_column; column < part.end_column; column += kPanel) {
      const float* panel = product.strips + column * product.depth;
      const int64_t left = product.columns - column;
      const int64_t vectors = left < kPanel ? (left + kLanes - 1) / kLanes : kVectors;
      for (int64_t i = 0; i < depths * tiles; ++i) {
        if (column + kPanel < part.end_column) FetchNext(product, panel, i, depths * tiles);
        const int64_t depth = i / tiles, first = i % tiles * kTile, row = begin + first;
        const int64_t here = rows - first < kTile ? rows - first : kTile;
        const int64_t from = product.depth * depth / depths;
        const int64_t to = product.depth * (depth + 1) / depths;
        float* tile = sums + first * kPanel;
        if (to == product.depth) FetchResults(product, row, here, column);
        kAddRows[here - 1][vectors - 1](product.src + row * product.depth + from, product.depth,
                                        panel + from * kStrip, to - from, depth == 0, tile);
        if (to == product.depth) FinishTile(product, tile, row, here, column);
      }
    }
  }
}

}  // namespace
}  // namespace mxplan::packed_product
