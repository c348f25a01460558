// The stage that runs a Winograd convolution: transforms of images around products of matrices.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_STAGE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_STAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "onednn/builder/memory_stage.h"
#include "onednn/winograd/chunks.h"
#include "onednn/winograd/kernels/kernels.h"

namespace mxplan::winograd {

struct Plan {
  int64_t groups = 1;
  Images src, dst;  // of the first group
  Grid grid;
  int64_t tiles = 0;
  int64_t src_columns = 0, dst_columns = 0;  // of a group's matrices: channels, rounded up
  Chunks chunks;
  int threads = 1;
  Kernels kernels;
  dnnl::primitive matmul;
  bool bias = false;
  std::vector<PostOp> post_ops;  // `data` is not null where an operand has to be filled in
  size_t first_weights = 0, first_buffer = 0;  // indices of their arguments
};

// `arguments`: src, dst, what is added behind the products (bias, operands of post-ops), each
// group's matrices of filters, then for each buffer its patches, products and scratchpad.
std::unique_ptr<const MemoryStage> MakeStage(Plan plan,
                                             const std::vector<MemoryArgument>& arguments);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_STAGE_H_
