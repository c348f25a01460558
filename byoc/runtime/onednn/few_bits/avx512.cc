// Products with numbers of few bits for AVX-512.
#include <type_traits>
#include <utility>

#include "onednn/few_bits/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#include "onednn/few_bits/kernels_impl.h"

namespace mxplan::few_bits {

Kernels Avx512Kernels() { return Get("few_bits:avx512"); }

}  // namespace mxplan::few_bits
