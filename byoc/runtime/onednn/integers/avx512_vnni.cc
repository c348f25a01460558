// Pointwise sums of products of 8-bit integers for AVX-512 VNNI.
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
#include "onednn/integers/pointwise_impl.h"

namespace mxplan::integers {

PointwiseKernel Avx512VnniPointwise() { return {"integers_1x1:avx512_vnni", RunPointwise}; }

}  // namespace mxplan::integers
