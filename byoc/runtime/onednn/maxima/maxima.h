// The largest of windows over 8-bit integers or numbers in bfloat16 with channels last.
//
// These kernels run every such step whose tensors they take: oneDNN's, which compare windows one by
// one, took longer in all that was measured.  See docs/figures/precision.md.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_MAXIMA_MAXIMA_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_MAXIMA_MAXIMA_H_

#include "onednn/builder/step_builder.h"

namespace mxplan::maxima {

// A step's windows, axis by axis; oneDNN counts dilation from 0.
struct Geometry {
  const Dims &kernel, &strides, &dilates, &padding;
};

// Adds the stage that writes dst; false, and nothing done, where tensors have other types or
// layouts, the step does more, or the machine has no vectors for it.
bool Build(StepBuilder* b, const Geometry& geometry);

}  // namespace mxplan::maxima

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_MAXIMA_MAXIMA_H_
