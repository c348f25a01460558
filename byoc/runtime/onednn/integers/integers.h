// Convolutions of 8-bit integers by kernels of our own, dense and depthwise ones; see
// kernels.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_INTEGERS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_INTEGERS_H_

#include <string>
#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::integers {

// The names of the kernels that compute the step as it stands, layouts included.
std::vector<std::string> NamesFor(StepBuilder* b);

// Builds the step by the kernels of one of these names.
void Build(StepBuilder* b, const std::string& name);

}  // namespace mxplan::integers

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_INTEGERS_H_
