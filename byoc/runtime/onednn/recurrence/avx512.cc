// Steps of recurrent layers for one sample, for AVX-512.
#include <utility>

#include "onednn/recurrence/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#define MXPLAN_LANES 16
#include "onednn/recurrence/rows_impl.h"

// Behind what it works with.
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels Avx512Kernels() { return {kLanes, RunStep}; }

}  // namespace mxplan::recurrence
