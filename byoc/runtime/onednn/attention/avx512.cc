// Attention for AVX-512.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#define MXPLAN_ROWS 8
#define MXPLAN_VALUES 2
#define MXPLAN_KEYS 24
#include "onednn/attention/kernels_impl.h"

namespace mxplan::attention {

Kernels Avx512Kernels() { return Get("attention:avx512"); }

}  // namespace mxplan::attention
