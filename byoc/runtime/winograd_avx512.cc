// Winograd's transforms for AVX-512.
#include "winograd_kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#include "winograd_kernels_impl.h"

namespace mxplan::winograd {

Kernels Avx512Kernels(Variant variant) { return Get(variant); }

}  // namespace mxplan::winograd
