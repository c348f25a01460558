// Products with numbers of few bits for any x86-64.
#include <type_traits>
#include <utility>

#include "onednn/few_bits/kernels.h"

#define MXPLAN_LANES 4
#include "onednn/few_bits/kernels_impl.h"

namespace mxplan::few_bits {

Kernels BaseKernels() { return Get("few_bits:sse2"); }

}  // namespace mxplan::few_bits
