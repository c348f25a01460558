// Mean and variance of each channel over a batch, for batch norms in training.
//
// oneDNN 3.2 adds up a channel's numbers one after another in float32: the mean of 32,768 numbers
// around 1 errs by up to 1e-5, and what is normalised by a deviation of 0.05 by more than 1e-4.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STATISTICS_STATISTICS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STATISTICS_STATISTICS_H_

#include "onednn/builder/step_builder.h"

namespace mxplan::statistics {

constexpr const char* kName = "moments";  // the implementation's name

// Adds a stage that writes batch_mean and batch_variance of src; false, adding nothing, for a
// layout or a type that it does not take.
bool Build(StepBuilder* b);

}  // namespace mxplan::statistics

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STATISTICS_STATISTICS_H_
