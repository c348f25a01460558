// Dense convolutions in bfloat16 over images of few channels by a kernel of our own; see kernels.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_WINDOWS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_WINDOWS_H_

#include <string>
#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::windows {

// The names of the kernels that compute the step as it stands, layouts included.
std::vector<std::string> NamesFor(StepBuilder* b);

// Builds the step by the kernels of one of these names.
void Build(StepBuilder* b, const std::string& name);

}  // namespace mxplan::windows

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_WINDOWS_H_
