// The stages that run convolutions of 8-bit integers, by kernels that share their work out.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_STAGES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_STAGES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "onednn/builder/memory_stage.h"
#include "onednn/integers/kernels.h"
#include "onednn/windows/bands.h"

namespace mxplan::integers {

// Numbers that a step may have, in the order of their arguments.
enum Role : size_t { kSrcScale, kSrcZero, kWeightsScale, kDstScale, kDstZero, kBias, kRoles };
constexpr const char* kRoleNames[kRoles] = {"src_scale", "src_zero_point", "weights_scale",
                                            "dst_scale", "dst_zero_point", "bias"};

// The numbers of a step, without those of a call.
struct Numbers {
  Source src;
  Result result;
  std::vector<Role> roles;
  std::vector<PostOp> post_ops;  // `data` is not null where an operand has to be filled in
};

// Pixels of dst, each made of as many numbers of src that lie one behind the other.
struct Pixels {
  int64_t count = 0, numbers = 0;
  // Those whose numbers are widened at one time: they stay in cache until they are read.
  int64_t Together(const Dense& product) const;
};

// `arguments`: src, dst, weights, the numbers of `roles`, the operands of post-ops, and last
// scratch memory where there is some, of `scratch` bytes for a thread.
std::unique_ptr<const MemoryStage> MakePixels(const Dense& product, const Pixels& pixels,
                                              int64_t scratch, const DenseKernel& kernel,
                                              Numbers numbers, int threads,
                                              const std::vector<MemoryArgument>& arguments);

// Bytes that a thread needs for a band.
int64_t BandScratch(const Bands& bands, const Dense& product, const DenseKernel& kernel);

std::unique_ptr<const MemoryStage> MakeWindows(const Dense& product, const Bands& bands,
                                               int64_t scratch, const DenseKernel& kernel,
                                               Numbers numbers, int threads,
                                               const std::vector<MemoryArgument>& arguments);

std::unique_ptr<const MemoryStage> MakeDepthwise(const Depthwise& product, int64_t images,
                                                 int64_t scratch, const DepthwiseKernel& kernel,
                                                 Numbers numbers, int threads,
                                                 const std::vector<MemoryArgument>& arguments);

}  // namespace mxplan::integers

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_STAGES_H_
