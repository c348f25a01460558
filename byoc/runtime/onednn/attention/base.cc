// Attention for any x86-64.
#define MXPLAN_LANES 4
#define MXPLAN_ROWS 4
#define MXPLAN_VALUES 2
#define MXPLAN_KEYS 12
#include "onednn/attention/kernels_impl.h"

namespace mxplan::attention {

Kernels BaseKernels() { return Get("attention:sse2"); }

}  // namespace mxplan::attention
