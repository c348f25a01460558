// Winograd's transforms of images in bfloat16 for AVX-512.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "onednn/winograd/kernels/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/winograd/kernels/kernels_impl.h"

namespace mxplan::winograd {

Kernels Avx512Bf16Kernels(Variant variant) { return Get<Short>(variant); }

}  // namespace mxplan::winograd
