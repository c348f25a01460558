// A function of every number of a result, behind the primitive that makes it.
//
// oneDNN evaluates tanh piece by piece, with coefficients from tables of 32.  AVX-512 looks one up
// by one instruction; AVX2 by four permutations and as many blends, which takes several times as
// long as an exponential.  Where there are no wider vectors, primitives whose last post-op is tanh,
// or GELU by tanh, go without it, and a stage of this room follows them on dst.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FUNCTIONS_FUNCTIONS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FUNCTIONS_FUNCTIONS_H_

#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::functions {

constexpr const char* kName = "functions:avx2";

// True if the last of `post_ops` is such a function, behind sums or products in float32.
bool TakesLast(const StepBuilder& b, const std::vector<PostOp>& post_ops);
// Adds the stage that applies `function` to dst where it stands.
void Add(StepBuilder* b, const PostOp& function);

}  // namespace mxplan::functions

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FUNCTIONS_FUNCTIONS_H_
