// Normalizations and rotations of rows for AVX2.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/rows/kernels_impl.h"

namespace mxplan::rows {

Kernels Avx2Kernels() { return Get("rms_normalization:avx2", "rotary:avx2", "log_softmax:avx2"); }

}  // namespace mxplan::rows
