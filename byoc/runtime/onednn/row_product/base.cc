// Products of a row with a matrix, for any x86-64.
#include "onednn/row_product/kernels.h"

#define MXPLAN_LANES 4
#include "onednn/row_product/kernels_impl.h"

namespace mxplan {

void RowProductBase(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                    void* dst) {
  Dispatch(product, src, begin, end, dst);
}

}  // namespace mxplan
