// Rows times a matrix that is packed in strips of columns, as plain functions on pointers.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKED_PRODUCT_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKED_PRODUCT_KERNELS_H_

#include <cstdint>

#include "onednn/post_ops/codes.h"

namespace mxplan::packed_product {

constexpr int64_t kStrip = 8;           // columns that stand side by side
constexpr int64_t kPanel = 3 * kStrip;  // columns that are multiplied at once
constexpr int64_t kTile = 4;            // rows likewise

struct Product {
  const float* src = nullptr;     // [rows, depth], dense
  const float* strips = nullptr;  // [columns / kStrip, depth, kStrip], zeros behind the last column
  float* dst = nullptr;           // [rows, columns], dense
  int64_t depth = 0, columns = 0;
  post_ops::Output output;  // operands have a number for each column, or stand as dst does
};

// A part of the results; columns begin and end with a panel, or with the matrix.
struct Part {
  int64_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
};

// dst = src . matrix + bias, and the post-ops of that.  Each result is summed over the depth in
// one order, whatever part it is of.
void Avx2(const Product& product, const Part& part);

}  // namespace mxplan::packed_product

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKED_PRODUCT_KERNELS_H_
