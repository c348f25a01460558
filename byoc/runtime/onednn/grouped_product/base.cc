// Products of rows with the matrix of their group for any x86-64.
#include <type_traits>
#include <utility>

#include "onednn/grouped_product/kernels.h"

#define MXPLAN_LANES 4
#include "onednn/grouped_product/kernels_impl.h"

namespace mxplan::grouped_product {

Kernels BaseKernels() { return {"grouped_product:sse2", Run}; }

}  // namespace mxplan::grouped_product
