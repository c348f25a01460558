// Conversions of numbers for AVX2.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "onednn/conversion/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/conversion/kernels_impl.h"

namespace mxplan::conversion {

Kernels Avx2Kernels(Number src, Number dst) {
  return Get(src, dst, {"conversion:avx2", "turn:avx2"});
}

}  // namespace mxplan::conversion
