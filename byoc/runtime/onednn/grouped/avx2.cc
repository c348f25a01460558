// Convolutions in narrow groups for AVX2.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "onednn/grouped/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#define MXPLAN_REGISTERS 16
#include "onednn/grouped/kernels_impl.h"

namespace mxplan::grouped {

Kernels Avx2Kernels() { return Get("grouped:avx2"); }

}  // namespace mxplan::grouped
