// Convolutions of 8-bit integers by kernels of our own, dense and depthwise ones, and products of
// rows with a constant matrix where oneDNN has none that is right; see kernels.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_INTEGERS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_INTEGERS_H_

#include <string>
#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::integers {

// The names of the kernels that compute the step as it stands, layouts included.
std::vector<std::string> NamesFor(StepBuilder* b);

// Whether the first of these names is what runs the step unless another is asked for: oneDNN has
// nothing but reference code that would be right.
bool IsFirst(StepBuilder* b, const std::vector<std::string>& names);

// Builds the step by the kernels of one of these names.
void Build(StepBuilder* b, const std::string& name);

// Whether the step, a product whose rows of src are plain, is one of rows that kernels take.
bool TakesRows(StepBuilder* b);

// Builds it.  `filters`: the weights in an order in which those of each column lie one behind the
// other, in that of src.
void BuildRows(StepBuilder* b, const dnnl::memory::desc& filters);

}  // namespace mxplan::integers

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_INTEGERS_H_
