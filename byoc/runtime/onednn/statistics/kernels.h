// Means and variances of channels, as plain functions on pointers.
//
// A sum of many thousand numbers in float32 errs by more than what follows may: numbers are summed
// in short chunks, each around the mean of what came before it, and chunks in float64.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STATISTICS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STATISTICS_KERNELS_H_

#include <cstdint>

namespace mxplan::statistics {

constexpr int kMostLanes = 16;      // numbers of a vector
constexpr int kMostChannels = 512;  // that are gone over at once

// Numbers of a channel stand `step` apart, `inner` of them in each of `outer` rows.
struct Rows {
  int64_t outer = 1, outer_stride = 0;
  int64_t inner = 0, step = 1;
};

// Of numbers that were gone over: by channel their mean, and the sum of squared distances from it.
struct Moments {
  double mean[kMostChannels], squares[kMostChannels];
  int64_t count = 0;
};

// The moments of `channels` channels that stand side by side.
using MomentsKernel = void (*)(const Rows& rows, const float* src, int channels, Moments* found);

void MomentsAvx512(const Rows& rows, const float* src, int channels, Moments* found);
void MomentsAvx2(const Rows& rows, const float* src, int channels, Moments* found);
void MomentsBase(const Rows& rows, const float* src, int channels, Moments* found);

}  // namespace mxplan::statistics

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STATISTICS_KERNELS_H_
