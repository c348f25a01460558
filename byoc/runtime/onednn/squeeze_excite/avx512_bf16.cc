// Squeeze-and-excite for AVX-512 with instructions for bfloat16.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_MASKS
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/squeeze_excite/kernels_impl.h"

namespace mxplan::squeeze_excite {

Kernels Avx512Bf16Kernels() { return Get("squeeze_excite:avx512_bf16"); }

}  // namespace mxplan::squeeze_excite
