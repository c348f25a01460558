// Normalizations and rotations of rows for any x86-64.
#define MXPLAN_LANES 4
#include "onednn/rows/kernels_impl.h"

namespace mxplan::rows {

Kernels BaseKernels() { return Get("rms_normalization:sse2", "rotary:sse2", "log_softmax:sse2"); }

}  // namespace mxplan::rows
