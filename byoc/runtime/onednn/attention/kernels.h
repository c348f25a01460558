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
template <typename Number>
struct RowsOfNumbers {
  const Number* data = nullptr;
  int64_t stride = 0;
};

// Of one row of queries.
template <typename Number>
struct QueryOfNumbers {
  const Number* data = nullptr;  // [depth]
  const float* mask = nullptr;   // [keys], added to scores
  Number* dst = nullptr;         // [width]
  int64_t visible = 0;           // it sees the keys before this one
};

template <typename Number>
struct BlockOfNumbers {
  int64_t keys = 0, depth = 0, width = 0;
  float scale = 1;
  bool masked = false;
  bool one_mask = false;            // of all rows
  int64_t mask_stride = 1;          // from key to key: 1, or 0 for one number
  bool dead_rows_are_zero = false;  // rows with NaN for probabilities: 0, or NaN
  RowsOfNumbers<Number> key, value;
};

template <typename Number>
struct KernelsOfNumbers {
  const char* name = "";
  int64_t lanes = 0;       // rows that are taken together
  int64_t most_lanes = 0;  // times `lanes`: the most rows of a call
  // The fewest keys that are packed, once for all rows of a call: more rows then cost little.  0
  // where none are.
  int64_t least_packed = 0;
  // Scratch floats of a call.
  int64_t (*scratch)(int64_t depth, int64_t width) = nullptr;
  using Call = void (*)(const BlockOfNumbers<Number>& block, const QueryOfNumbers<Number>* queries,
                        int64_t count, float* scratch);
  Call rows = nullptr;  // `count` rows, at most lanes * most_lanes
  Call few = nullptr;   // the same one by one
};

using Rows = RowsOfNumbers<float>;
using Query = QueryOfNumbers<float>;
using Block = BlockOfNumbers<float>;
using Kernels = KernelsOfNumbers<float>;

// A number in bfloat16, by its bits.
using Short = uint16_t;
using ShortKernels = KernelsOfNumbers<Short>;

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();
ShortKernels Avx512Bf16Kernels();
ShortKernels AmxKernels();

// The kernels of the instruction set that oneDNN uses; those for bfloat16 have no name where it has
// none for it.
Kernels SelectKernels();
ShortKernels SelectShortKernels();

}  // namespace mxplan::attention

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_KERNELS_H_
