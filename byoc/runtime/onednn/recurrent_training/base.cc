// Steps of recurrent layers in training, for any x86-64.
#include "onednn/recurrent_training/kernels.h"

#define MXPLAN_LANES 4
#include "onednn/recurrent_training/kernels_impl.h"

namespace mxplan::recurrent_training {

Kernels BaseKernels() { return {kLanes, RunForward, RunBackward}; }

}  // namespace mxplan::recurrent_training
