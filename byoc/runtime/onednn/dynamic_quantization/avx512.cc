// Dynamic quantization for AVX-512.
#include <cmath>
#include <cstring>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#include "onednn/dynamic_quantization/kernels_impl.h"

namespace mxplan::dynamic_quantization {

Kernels Avx512Kernels() { return Get("dynamic_quantization:avx512"); }

}  // namespace mxplan::dynamic_quantization
