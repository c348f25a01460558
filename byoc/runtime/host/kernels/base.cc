// Loops over elements for any x86-64.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "host/kernels/kernels.h"

#define MXPLAN_ISA "base"
#define MXPLAN_LANES 4
#include "host/kernels/kernels_impl.h"

namespace mxplan::host {

Kernels BaseKernels() { return Get(); }

}  // namespace mxplan::host
