// Moments of channels, for AVX2.
#include "onednn/statistics/kernels.h"

#pragma GCC target("avx2,fma")
#include "onednn/statistics/kernels_impl.h"

namespace mxplan::statistics {

void MomentsAvx2(const Rows& rows, const float* src, int channels, Moments* found) {
  FindMoments(rows, src, channels, found);
}

}  // namespace mxplan::statistics
