// Moments of channels, for any x86-64.
#include "onednn/statistics/kernels.h"
#include "onednn/statistics/kernels_impl.h"

namespace mxplan::statistics {

void MomentsBase(const Rows& rows, const float* src, int lanes, Moments* found) {
  FindMoments(rows, src, lanes, found);
}

}  // namespace mxplan::statistics
