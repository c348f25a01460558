// Normalizations and rotations of rows for AVX-512.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#include "onednn/rows/kernels_impl.h"

namespace mxplan::rows {

Kernels Avx512Kernels() {
  return Get("rms_normalization:avx512", "rotary:avx512", "log_softmax:avx512");
}

}  // namespace mxplan::rows
