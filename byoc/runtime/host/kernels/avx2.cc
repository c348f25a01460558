// Loops over elements for AVX2.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "host/kernels/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_ISA "avx2"
#define MXPLAN_LANES 8
#include "host/kernels/kernels_impl.h"

namespace mxplan::host {

Kernels Avx2Kernels() { return Get(); }

}  // namespace mxplan::host
