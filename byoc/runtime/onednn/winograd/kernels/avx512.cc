// Winograd's transforms for AVX-512.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "onednn/winograd/kernels/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#include "onednn/winograd/kernels/kernels_impl.h"

namespace mxplan::winograd {

Kernels Avx512Kernels(Variant variant) { return Get<float>(variant); }

}  // namespace mxplan::winograd
