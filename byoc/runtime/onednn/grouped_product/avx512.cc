// Products of rows with the matrix of their group for AVX-512.
#include <type_traits>
#include <utility>

#include "onednn/grouped_product/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define MXPLAN_LANES 16
#include "onednn/grouped_product/kernels_impl.h"

namespace mxplan::grouped_product {

Kernels Avx512Kernels() { return {"grouped_product:avx512", Run}; }

}  // namespace mxplan::grouped_product
