// Products of rows with the matrix of their group for AVX2.
#include <type_traits>
#include <utility>

#include "onednn/grouped_product/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/grouped_product/kernels_impl.h"

namespace mxplan::grouped_product {

Kernels Avx2Kernels() { return {"grouped_product:avx2", Run}; }

}  // namespace mxplan::grouped_product
