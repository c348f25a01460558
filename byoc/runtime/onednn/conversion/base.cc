// Conversions of numbers for any x86-64.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#define MXPLAN_LANES 4
#include "onednn/conversion/kernels_impl.h"

namespace mxplan::conversion {

Kernels BaseKernels(Number src, Number dst) {
  return Get(src, dst, {"conversion:sse2", "turn:sse2"});
}

}  // namespace mxplan::conversion
