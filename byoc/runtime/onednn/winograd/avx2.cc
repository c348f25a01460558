// Winograd's transforms for AVX2.
#include <cstdint>
#include <utility>

#include "onednn/winograd/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/winograd/kernels_impl.h"

namespace mxplan::winograd {

Kernels Avx2Kernels(Variant variant) { return Get(variant); }

}  // namespace mxplan::winograd
