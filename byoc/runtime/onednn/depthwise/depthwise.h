// Convolutions of each channel by itself in bfloat16 by a kernel of our own; see kernels.h.
//
// oneDNN's widens a number again for every tap that reads it, and its weights for every pixel.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DEPTHWISE_DEPTHWISE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DEPTHWISE_DEPTHWISE_H_

#include <string>
#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::depthwise {

// The names of the kernels that compute the step as it stands, layouts included.
std::vector<std::string> NamesFor(StepBuilder* b);

// Builds the step by the kernels of one of these names.
void Build(StepBuilder* b, const std::string& name);

}  // namespace mxplan::depthwise

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DEPTHWISE_DEPTHWISE_H_
