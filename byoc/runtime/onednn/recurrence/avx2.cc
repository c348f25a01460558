// Steps of recurrent layers for few samples, for AVX2.
#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/recurrence/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels Avx2Kernels() { return {kLanes, {RunStep<float>, nullptr}}; }

}  // namespace mxplan::recurrence
