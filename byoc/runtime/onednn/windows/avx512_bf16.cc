// Windows over images in bfloat16, for AVX-512 with instructions for it.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_MASKS
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/vectors/lanes_impl.h"

namespace mxplan::windows {
namespace {

MXPLAN_INLINE Vec Dot(Vec sum, Ints pairs, Ints weights) {
  return reinterpret_cast<Vec>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum),
                                                reinterpret_cast<__m512bh>(pairs),
                                                reinterpret_cast<__m512bh>(weights)));
}

}  // namespace
}  // namespace mxplan::windows

// Behind what it works with.
#include "onednn/windows/kernels_impl.h"

namespace mxplan::windows {

Kernels Avx512Bf16Kernels() { return {"windows:avx512_bf16", Run}; }

}  // namespace mxplan::windows
