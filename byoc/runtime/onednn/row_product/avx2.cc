// Products of a row with a matrix, for AVX2.
#include <utility>

#include "onednn/row_product/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/row_product/kernels_impl.h"

namespace mxplan {

void RowProductAvx2(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                    void* dst) {
  Dispatch(product, src, begin, end, dst);
}

}  // namespace mxplan
