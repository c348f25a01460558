// Winograd's transforms for AVX2.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "onednn/winograd/kernels/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/winograd/kernels/kernels_impl.h"

namespace mxplan::winograd {

Kernels Avx2Kernels(Variant variant) { return Get<float>(variant); }

}  // namespace mxplan::winograd
