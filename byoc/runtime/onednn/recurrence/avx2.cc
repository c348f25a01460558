// Steps of recurrent layers for one sample, for AVX2.
#include <utility>

#include "onednn/recurrence/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/recurrence/rows_impl.h"

// Behind what it works with.
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels Avx2Kernels() { return {kLanes, RunStep}; }

}  // namespace mxplan::recurrence
