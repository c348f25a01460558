// An inner product of one sample, at the speed of reading the weights.
//
// oneDNN 3.2 reads them at two thirds of what memory gives, in whatever order it packs them; here
// they stay in the order of the sample, and plain ones in place.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ROW_PRODUCT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ROW_PRODUCT_H_

#include <string>

#include "executable.h"

namespace mxplan {

// True if BuildRowProduct takes an inner product with constant weights: one sample, float32, no
// post-op but a relu.
bool TakesRowProduct(const StepBuilder& b);

// `order` is the layout of the sample.
void BuildRowProduct(StepBuilder* b, const std::string& order);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ROW_PRODUCT_H_
