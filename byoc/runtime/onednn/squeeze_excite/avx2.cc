// Squeeze-and-excite for AVX2.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/squeeze_excite/kernels_impl.h"

namespace mxplan::squeeze_excite {

Kernels Avx2Kernels() { return Get("squeeze_excite:avx2"); }

}  // namespace mxplan::squeeze_excite
