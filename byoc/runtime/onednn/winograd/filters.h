// Filters that are no constant: transformed in each call, by a stage in front of the products.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_FILTERS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_FILTERS_H_

#include <memory>
#include <vector>

#include "onednn/builder/memory_stage.h"
#include "onednn/winograd/kernels/kernels.h"

namespace mxplan::winograd {

// Writes the matrices of each group, [patch elements, C, K] in any blocked layout, from `filters`,
// [K, C, size, size] or [G, K, C, size, size] in any other one; `turned` by 180 degrees on the way.
// What is behind C and K is zero.  Throws Unsupported where kColumns columns of a matrix do not
// stand side by side.
std::unique_ptr<const MemoryStage> MakeFiltersStage(const Kernels& kernels,
                                                    const MemoryArgument& filters, bool turned,
                                                    const std::vector<MemoryArgument>& matrices);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_FILTERS_H_
