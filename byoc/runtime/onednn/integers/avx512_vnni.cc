// Dense sums of products of 8-bit integers for AVX-512 VNNI.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/integers/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")
#define MXPLAN_LANES 16
#include "onednn/integers/avx512_vnni_impl.h"
// Behind what they work with.
#include "onednn/integers/result_impl.h"
// Behind what it works on.
#include "onednn/integers/dense_impl.h"

namespace mxplan::integers {

DenseKernel Avx512VnniDense() { return {"avx512_vnni", kNumbers, nullptr, RunDense<Nothing>}; }

}  // namespace mxplan::integers
