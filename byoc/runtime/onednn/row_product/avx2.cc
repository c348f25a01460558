// Products of a row with a matrix, for AVX2.
#include <utility>

#include "onednn/row_product/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/row_product/kernels_impl.h"

namespace mxplan {

void RowProductAvx2(const RowProduct& product, const float* src, int64_t begin, int64_t end,
                    float* dst) {
  Product(product, src, begin, end, dst);
}

}  // namespace mxplan
