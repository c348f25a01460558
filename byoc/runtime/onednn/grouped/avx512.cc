// Convolutions in narrow groups for AVX-512.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "onednn/grouped/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#define MXPLAN_REGISTERS 32
#include "onednn/grouped/kernels_impl.h"

namespace mxplan::grouped {

Kernels Avx512Kernels() { return Get("grouped:avx512"); }

}  // namespace mxplan::grouped
