// A recurrent layer of few samples, of one at the speed of reading the recurrent weights.
//
// oneDNN 3.2 multiplies rows of few samples as a matrix in every step.  Here the inputs of all
// steps are multiplied at once, by oneDNN, and each step reads its weights as a stream, for as many
// samples together as fit the registers.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_RECURRENCE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_RECURRENCE_H_

#include "onednn/builder/step_builder.h"

namespace mxplan::recurrence {

constexpr const char* kName = "sample_recurrence";  // the implementation's name

// True if Build takes the layer: few samples, constant weights with a bias, no peepholes, a cell
// whose gates wait for nothing but the last step; all in float32, or the inputs and all weights in
// bfloat16.
bool Takes(const StepBuilder& b);

void Build(StepBuilder* b);

}  // namespace mxplan::recurrence

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_RECURRENCE_H_
