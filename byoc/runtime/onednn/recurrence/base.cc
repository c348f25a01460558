// Steps of recurrent layers for one sample, for any x86-64.
#include "onednn/recurrence/kernels.h"

#define MXPLAN_LANES 4
#include "onednn/recurrence/rows_impl.h"

// Behind what it works with.
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels BaseKernels() { return {kLanes, RunStep}; }

}  // namespace mxplan::recurrence
