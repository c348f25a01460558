// Functions of float32 numbers as plain functions on pointers.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FUNCTIONS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FUNCTIONS_KERNELS_H_

#include <cstdint>

#include "onednn/post_ops/codes.h"

namespace mxplan::functions {

// Applies `function`, which has no operand, to `count` numbers where they stand.
void Avx2(const post_ops::PostOp& function, float* numbers, int64_t count);

}  // namespace mxplan::functions

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FUNCTIONS_KERNELS_H_
