// Convolutions and transposed convolutions with few output channels by kernels of our own; see
// kernels.h.
//
// oneDNN's vectors hold output channels, of which these leave most lanes empty.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_FEW_OUTPUTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_FEW_OUTPUTS_H_

#include <string>
#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::few_outputs {

// The names of the kernels that compute the step as it stands, layouts included.
std::vector<std::string> NamesFor(StepBuilder* b);

// Builds the step by the kernels of one of these names.
void Build(StepBuilder* b, const std::string& name);

}  // namespace mxplan::few_outputs

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_FEW_OUTPUTS_H_
