// Convolutions with few output channels, for AVX2.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/few_outputs/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#define MXPLAN_REGISTERS 16
#include "onednn/few_outputs/kernels_impl.h"

namespace mxplan::few_outputs {

Kernel Avx2Kernel() { return Get("few_outputs:avx2"); }

}  // namespace mxplan::few_outputs
