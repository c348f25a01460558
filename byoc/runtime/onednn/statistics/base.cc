// Moments of channels, for any x86-64.
#include "onednn/statistics/kernels.h"
#include "onednn/statistics/kernels_impl.h"

namespace mxplan::statistics {

void MomentsBase(const Rows& rows, const float* src, int channels, Moments* found) {
  FindMoments(rows, src, channels, found);
}

}  // namespace mxplan::statistics
