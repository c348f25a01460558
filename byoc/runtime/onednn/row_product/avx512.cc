// Products of a row with a matrix, for AVX-512.
#include <utility>

#include "onednn/row_product/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#define MXPLAN_LANES 16
#include "onednn/row_product/kernels_impl.h"

namespace mxplan {

void RowProductAvx512(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                      void* dst) {
  Dispatch(product, src, begin, end, dst);
}

}  // namespace mxplan
