// Steps of recurrent layers for few samples, for AVX-512 with instructions for bfloat16.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/recurrence/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels Avx512Bf16Kernels() { return {kLanes, {RunStep<float>, RunStep<Short>}, Round}; }

}  // namespace mxplan::recurrence
