// Convolutions with few output channels, for AVX-512.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/few_outputs/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#define MXPLAN_LANES 16
#define MXPLAN_REGISTERS 32
#define MXPLAN_MASKS
#include "onednn/few_outputs/kernels_impl.h"

namespace mxplan::few_outputs {

Kernel Avx512Kernel() { return Get("few_outputs:avx512"); }

}  // namespace mxplan::few_outputs
