// Dynamic quantization for AVX2.
#include <cmath>
#include <cstring>

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/dynamic_quantization/kernels_impl.h"

namespace mxplan::dynamic_quantization {

Kernels Avx2Kernels() { return Get("dynamic_quantization:avx2"); }

}  // namespace mxplan::dynamic_quantization
