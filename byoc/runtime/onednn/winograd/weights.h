// Filters for Winograd's convolution: transformed once, when a region is loaded.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_WEIGHTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_WEIGHTS_H_

#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/winograd/kernels/kernels.h"

namespace mxplan::winograd {

// One group of `filters`, [K, C, size, size] or with groups [G, K, C, size, size] in any layout
// without blocks, becomes `matrices` [patch elements, rows, columns], dense, of at least C rows and
// K columns; what is behind those is zero.  `turned`: by 180 degrees.  Computed in float64, rounded
// once.
void TransformWeights(Variant variant, int64_t group, bool turned, const dnnl::memory::desc& desc,
                      const float* filters, int64_t rows, int64_t columns, float* matrices);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_WEIGHTS_H_
