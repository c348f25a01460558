// Steps of recurrent layers in training, for AVX-512.
#include <utility>

#include "onednn/recurrent_training/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#define MXPLAN_LANES 16
#include "onednn/recurrent_training/kernels_impl.h"

namespace mxplan::recurrent_training {

Kernels Avx512Kernels() { return {kLanes, RunForward, RunBackward}; }

}  // namespace mxplan::recurrent_training
