// Steps of recurrent layers for few samples, for any x86-64.
#include "onednn/recurrence/kernels.h"

#define MXPLAN_LANES 4
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels BaseKernels() { return {kLanes, {RunStep<float>, nullptr}}; }

}  // namespace mxplan::recurrence
