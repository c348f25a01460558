// Convolutions in narrow groups for any x86-64.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "onednn/grouped/kernels.h"

#define MXPLAN_LANES 4
#define MXPLAN_REGISTERS 16
#include "onednn/grouped/kernels_impl.h"

namespace mxplan::grouped {

Kernels BaseKernels() { return Get("grouped:sse2"); }

}  // namespace mxplan::grouped
