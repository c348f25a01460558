// Winograd's transforms for any x86-64.
#include "winograd_kernels.h"

#define MXPLAN_LANES 4
#include "winograd_kernels_impl.h"

namespace mxplan::winograd {

Kernels BaseKernels(Variant variant) { return Get(variant); }

}  // namespace mxplan::winograd
