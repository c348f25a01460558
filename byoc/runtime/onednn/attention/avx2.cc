// Attention for AVX2.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#define MXPLAN_ROWS 4
#define MXPLAN_VALUES 2
#define MXPLAN_KEYS 12
#include "onednn/attention/kernels_impl.h"

namespace mxplan::attention {

Kernels Avx2Kernels() { return Get("attention:avx2"); }

}  // namespace mxplan::attention
