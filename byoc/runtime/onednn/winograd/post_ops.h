// A step's post-ops as the output transform of a Winograd convolution applies them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_POST_OPS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_POST_OPS_H_

#include <cstddef>
#include <vector>

#include "onednn/builder/step_builder.h"
#include "onednn/winograd/kernels.h"

namespace mxplan::winograd {

constexpr size_t kMaxPostOps = 32;

// In their order, kMaxPostOps at most; throws Unsupported for what the transform does not have.
// `data` is not null where an operand has to be filled in.
std::vector<PostOp> PostOpsOf(const StepBuilder& b);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_POST_OPS_H_
