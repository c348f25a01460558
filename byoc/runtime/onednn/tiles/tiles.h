// Dense convolutions in bfloat16 by a kernel of our own for AMX; see kernels.h.
//
// oneDNN 3.2's are as fast without functions behind them, and take more than twice as long for
// these, which they compute as exactly as float32 would need.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_TILES_TILES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_TILES_TILES_H_

#include <string>
#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::tiles {

// The names of the kernels that compute a convolution as it stands, layouts included.
std::vector<std::string> NamesFor(StepBuilder* b);

// Builds it by the kernels of one of these names.
void Build(StepBuilder* b, const std::string& name);

}  // namespace mxplan::tiles

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_TILES_TILES_H_
