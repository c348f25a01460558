// Squeeze-and-excite for AVX-512.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#define MXPLAN_MASKS
#include "onednn/squeeze_excite/kernels_impl.h"

namespace mxplan::squeeze_excite {

Kernels Avx512Kernels() { return Get("squeeze_excite:avx512"); }

}  // namespace mxplan::squeeze_excite
