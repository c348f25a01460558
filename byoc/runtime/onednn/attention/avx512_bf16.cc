// Attention on bfloat16 for AVX-512.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_ROWS 8
#define MXPLAN_VALUES 2
#define MXPLAN_KEYS 24
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/attention/kernels_impl.h"
#include "onednn/attention/short_kernels_impl.h"

namespace mxplan::attention {

ShortKernels Avx512Bf16Kernels() { return GetShort("attention:avx512_bf16"); }

}  // namespace mxplan::attention
