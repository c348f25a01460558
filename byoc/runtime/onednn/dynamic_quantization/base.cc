// Dynamic quantization for any x86-64.
#define MXPLAN_LANES 4
#include "onednn/dynamic_quantization/kernels_impl.h"

namespace mxplan::dynamic_quantization {

Kernels BaseKernels() { return Get("dynamic_quantization:sse2"); }

}  // namespace mxplan::dynamic_quantization
