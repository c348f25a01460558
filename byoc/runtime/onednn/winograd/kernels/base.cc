// Winograd's transforms for any x86-64.
#include <cstdint>
#include <utility>

#include "onednn/winograd/kernels/kernels.h"

#define MXPLAN_LANES 4
#include "onednn/winograd/kernels/kernels_impl.h"

namespace mxplan::winograd {

Kernels BaseKernels(Variant variant) { return Get<float>(variant); }

}  // namespace mxplan::winograd
