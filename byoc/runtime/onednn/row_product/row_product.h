// An inner product of one sample, at the speed of reading the weights.
//
// oneDNN 3.2 reads them at two thirds of what memory gives, in whatever order it packs them, and
// convolves one pixel at less than that; here they stay in the order of the sample, and plain ones
// in place.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROW_PRODUCT_ROW_PRODUCT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROW_PRODUCT_ROW_PRODUCT_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/builder/step_builder.h"

namespace mxplan {

constexpr const char* kRowProduct = "row_product";  // the implementation's name

// True if BuildRowProduct takes a product with constant weights: one sample, no tails, post-ops
// that kernels have.
bool TakesRowProduct(const StepBuilder& b);

// `rows` are the weights as they are to be stored: `columns` filters, one behind the other, each in
// the order of the sample.
void BuildRowProduct(StepBuilder* b, const dnnl::memory::desc& rows, int64_t columns);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROW_PRODUCT_ROW_PRODUCT_H_
