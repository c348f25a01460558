// Rows times the packed matrix of their group, as plain functions on pointers.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_GROUPED_PRODUCT_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_GROUPED_PRODUCT_KERNELS_H_

#include <cstdint>

#include "onednn/post_ops/codes.h"

namespace mxplan::grouped_product {

constexpr int64_t kStrip = 16;   // columns that stand side by side
constexpr int64_t kBlock = 96;   // rows of a part at most
constexpr int64_t kChunk = 128;  // columns of a part at most, whole strips but for the last

struct Product {
  const float* src = nullptr;     // [rows, depth], dense
  const float* strips = nullptr;  // [groups, strips, depth, kStrip], zeros behind the last column
  float* dst = nullptr;           // [rows, columns], dense
  int64_t depth = 0, columns = 0;
  const post_ops::PostOp* post_ops = nullptr;  // operands by column, or stand as dst does
  int64_t post_op_count = 0;
};

// Some rows of one group and some columns; `group` is -1 of rows that have none.
struct Part {
  int64_t group = -1;
  int64_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
};

struct Kernels {
  const char* name = "";
  // Each result is summed over the depth in one order, whatever part it is of.
  void (*run)(const Product& product, const Part& part) = nullptr;
};

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

}  // namespace mxplan::grouped_product

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_GROUPED_PRODUCT_KERNELS_H_
