// Products with numbers of few bits for AVX2.
#include <type_traits>
#include <utility>

#include "onednn/few_bits/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/few_bits/kernels_impl.h"

namespace mxplan::few_bits {

Kernels Avx2Kernels() { return Get("few_bits:avx2"); }

}  // namespace mxplan::few_bits
