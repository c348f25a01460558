// Steps of recurrent layers in training, for AVX2.
#include <utility>

#include "onednn/recurrent_training/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/recurrent_training/kernels_impl.h"

namespace mxplan::recurrent_training {

Kernels Avx2Kernels() { return {kLanes, RunForward, RunBackward}; }

}  // namespace mxplan::recurrent_training
