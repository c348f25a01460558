// Conversions of numbers for AVX-512.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "onednn/conversion/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#include "onednn/conversion/kernels_impl.h"

namespace mxplan::conversion {

Kernels Avx512Kernels(Number src, Number dst) {
  return Get(src, dst, {"conversion:avx512", "turn:avx512"});
}

}  // namespace mxplan::conversion
