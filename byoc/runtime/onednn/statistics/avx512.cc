// Moments of channels, for AVX-512.
#include "onednn/statistics/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#include "onednn/statistics/kernels_impl.h"

namespace mxplan::statistics {

void MomentsAvx512(const Rows& rows, const float* src, int channels, Moments* found) {
  FindMoments(rows, src, channels, found);
}

}  // namespace mxplan::statistics
