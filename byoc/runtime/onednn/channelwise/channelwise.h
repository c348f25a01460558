// Numbers in bfloat16 scaled and shifted by their channel, as batch norms that no product takes, by
// a kernel of our own; see kernels.h.
//
// oneDNN's functions of two tensors take 10 cycles for a vector of them, three times as long as the
// bytes need; in float32 they take no longer than
// these do.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CHANNELWISE_CHANNELWISE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CHANNELWISE_CHANNELWISE_H_

#include "onednn/builder/step_builder.h"

namespace mxplan::channelwise {

// Adds the stage that writes dst of a function of src and src1; false, and nothing done, where the
// step is another one, channels are not innermost, or the machine has no instructions for it.
bool Build(StepBuilder* b);

}  // namespace mxplan::channelwise

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CHANNELWISE_CHANNELWISE_H_
