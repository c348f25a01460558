// Loops over elements for AVX-512.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "host/kernels/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_ISA "avx512"
#define MXPLAN_LANES 16
#include "host/kernels/kernels_impl.h"

namespace mxplan::host {

Kernels Avx512Kernels() { return Get(); }

}  // namespace mxplan::host
