// Squeeze-and-excite for any x86-64.
#define MXPLAN_LANES 4
#include "onednn/squeeze_excite/kernels_impl.h"

namespace mxplan::squeeze_excite {

Kernels BaseKernels() { return Get("squeeze_excite:sse2"); }

}  // namespace mxplan::squeeze_excite
