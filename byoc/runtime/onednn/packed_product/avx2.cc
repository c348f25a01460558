// Products of rows with a packed matrix, for AVX2.
#include <cstring>
#include <utility>

#include "onednn/packed_product/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/packed_product/kernels_impl.h"

namespace mxplan::packed_product {

void Avx2(const Product& product, const Part& part) { Run(product, part); }

}  // namespace mxplan::packed_product
