// Rows times a matrix whose numbers have few bits, as plain functions on pointers.
//
//   dst[m, n] = sum over k of src[m, k] * scales[n, b] * (number[n, k] - zero[n, b]),  b = k /
//   block
//
// Columns n stand in groups of kGroup.  A group's words hold consecutive numbers of one column,
// the lowest bits first, word w of all its columns in a row: [groups, words, kGroup]; its scales
// and zero points [groups, blocks, kGroup].  So numbers of kGroup columns come out of a vector of
// words by one shift, and scales are vectors too.
//
// Few rows are multiplied as the words are read, once, which takes no longer than reading them.
// For many rows, tiles of the matrix become real numbers in the nearest cache, ahead of a product
// by blocks of rows.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_BITS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_BITS_KERNELS_H_

#include <cstdint>

#include "onednn/post_ops/codes.h"

namespace mxplan::few_bits {

constexpr int64_t kGroup = 16;
constexpr int64_t kWordBits = 32;
constexpr int64_t kFewRows = 4;

enum class Zero : uint8_t { kMiddle, kBytes, kReals };  // kMiddle: half of the numbers there are

struct Product {
  const int32_t* words = nullptr;
  const float* scales = nullptr;
  const void* zero_points = nullptr;
  Zero zero = Zero::kMiddle;
  int64_t bits = 0, block = 0, blocks = 0;  // a block is whole words
  int64_t words_of_column = 0;
  int64_t rows = 0, depth = 0, columns = 0;
  const float* src = nullptr;  // [rows, depth]; for many rows packed by `pack`
  float* dst = nullptr;        // [rows, columns]
  const post_ops::PostOp* post_ops = nullptr;
  int64_t post_op_count = 0;
};

// Rows in blocks, as `pack` leaves them: [depth, height] one behind the other, heights all but
// equal.
struct RowBlocks {
  int64_t count = 0;  // of blocks
  int64_t rows = 0;

  int64_t Begin(int64_t block) const { return rows * block / count; }
};

struct Kernels {
  const char* name = "";
  int64_t tile_groups = 1;  // groups that a tile of the matrix has
  int64_t most_rows = 0;    // of a block
  int64_t scratch = 0;      // floats of a thread for many rows
  // Groups [begin, end) of kFewRows rows at most.
  void (*few)(const Product& product, int64_t begin, int64_t end) = nullptr;
  // Blocks [begin, end) of rows from `src` into `packed`.
  void (*pack)(const float* src, int64_t depth, const RowBlocks& blocks, int64_t begin, int64_t end,
               float* packed) = nullptr;
  // Tiles [begin, end) of all rows.
  void (*many)(const Product& product, const RowBlocks& blocks, int64_t begin, int64_t end,
               float* scratch) = nullptr;
};

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

}  // namespace mxplan::few_bits

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_BITS_KERNELS_H_
