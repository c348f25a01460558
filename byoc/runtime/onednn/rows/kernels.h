// Rows on which each number meets few others, as plain functions on pointers.
//
//   normalize   dst[i] = src[i] / sqrt(mean of src[j]^2 + epsilon) * scale[i]
//   log_softmax dst[i] = src[i] - log(sum of exp(src[j]))
//   rotate      pairs (a, b) of src become (a * cos - b * sin, b * cos + a * sin)
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROWS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROWS_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"

namespace mxplan::rows {

struct Normalization {
  int64_t count = 0;
  float epsilon = 0;
  const float* scale = nullptr;  // none: 1 everywhere
};

// Of the first `width` numbers of a row of `count`; those behind them stay.  The halves of the
// first ones are pairs, or neighbours are.  Tables have a number for each pair, or for each number.
struct Rotation {
  int64_t count = 0, width = 0;
  bool interleaved = false;
  bool whole_tables = false;
};

struct Kernels {
  const char* normalization = "";
  const char* rotation = "";
  const char* log_softmax = "";
  // By the types of src and dst.
  void (*normalize[kReals][kReals])(const Normalization& of, const void* src, void* dst) = {};
  // By the type of both; dst is not src.
  void (*rotate[kReals])(const Rotation& of, const void* src, const float* cosines,
                         const float* sines, void* dst) = {};
  // By the types of src and dst.
  void (*logarithms[kReals][kReals])(int64_t count, const void* src, void* dst) = {};
};

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

// The kernels of the instruction set that oneDNN uses.
Kernels SelectKernels();

}  // namespace mxplan::rows

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROWS_KERNELS_H_
