// Dense sums of products of 8-bit integers for AVX2.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/integers/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/integers/avx2_impl.h"
// Behind what they work with.
#include "onednn/integers/result_impl.h"
// Behind what it works on.
#include "onednn/integers/dense_impl.h"

namespace mxplan::integers {

DenseKernel Avx2Dense() { return {"avx2_words", kNumbers, Widen, RunDense<Nothing>}; }

}  // namespace mxplan::integers
