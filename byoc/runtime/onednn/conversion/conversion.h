// Conversions between real numbers and integers of 8 bits, with one scale for all of a side, and
// floats whose axes change their order, to and from bfloat16 on the way.
//
// oneDNN converts by a reorder that takes several times as long as the bytes need, more where the
// order of axes changes as well: an image that arrives with its channels apart, a transposed key.
// It moves floats into another order one by one.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CONVERSION_CONVERSION_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CONVERSION_CONVERSION_H_

#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/builder/step_builder.h"

namespace mxplan::conversion {

// Adds the stage that converts src into dst by the step's scales and zero points; false, and
// nothing done, where there are several of one side, layouts have blocks or gaps, or real numbers
// keep more than a few of their neighbours.
bool Build(StepBuilder* b, const dnnl::memory::desc& src, const dnnl::memory::desc& dst);

}  // namespace mxplan::conversion

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CONVERSION_CONVERSION_H_
