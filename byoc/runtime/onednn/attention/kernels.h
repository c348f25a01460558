// Attention of a block of queries over all keys they share, as plain functions on pointers.
//
//   dst[row] = sum over keys of softmax(scale * query[row] . key + mask[row])[key] * value[key]
//
// Rows of queries are lanes of vectors while scores are made, so that maxima and sums of a softmax
// need no step across lanes, and keys are read where they stand, one number for all lanes:
//
//   scores [keys][rows]     sums over depth of  key[k][d] * query'[d][rows]     query' is a copy
//   dst    [rows][width]    sums over keys of   p[k][row] * value[k][width]
//
// Keys are taken in blocks whose scores stay in the nearest caches; maxima and sums run along, and
// what was summed before is scaled when a maximum grows.  A few rows, as one in decoding, are taken
// with lanes along the depth, and then along the keys.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_KERNELS_H_

#include <cstdint>

namespace mxplan::attention {

constexpr int64_t kKeysAtOnce = 256;

// Rows of numbers that stand side by side, `stride` apart.
struct Rows {
  const float* data = nullptr;
  int64_t stride = 0;
};

// Of one row of queries.
struct Query {
  const float* data = nullptr;  // [depth]
  const float* mask = nullptr;  // [keys], added to scores
  float* dst = nullptr;         // [width]
  int64_t visible = 0;          // it sees the keys before this one
};

struct Block {
  int64_t keys = 0, depth = 0, width = 0;
  float scale = 1;
  bool masked = false;
  bool one_mask = false;            // of all rows
  int64_t mask_stride = 1;          // from key to key: 1, or 0 for one number
  bool dead_rows_are_zero = false;  // rows with NaN for probabilities: 0, or NaN
  Rows key, value;
};

struct Kernels {
  const char* name = "";
  int64_t lanes = 0;       // rows that are taken together
  int64_t most_lanes = 0;  // times `lanes`: the most rows of a call
  // Scratch floats of a call.
  int64_t (*scratch)(int64_t depth, int64_t width) = nullptr;
  // `count` rows, at most lanes * most_lanes.
  void (*rows)(const Block& block, const Query* queries, int64_t count, float* scratch) = nullptr;
  // The same one by one.
  void (*few)(const Block& block, const Query* queries, int64_t count, float* scratch) = nullptr;
};

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

// The kernels of the instruction set that oneDNN uses.
Kernels SelectKernels();

}  // namespace mxplan::attention

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_KERNELS_H_
