// Steps of recurrent layers for few samples, for AVX-512.
#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/recurrence/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#define MXPLAN_LANES 16
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels Avx512Kernels() { return {kLanes, {RunStep<float>, RunStep<Short>}, Round}; }

}  // namespace mxplan::recurrence
