// A few hundred rows, and fewer, times a constant matrix in float32, for processors with AVX2
// alone.
//
// There oneDNN 3.2 has a matrix product of plain matrices, which runs what is behind it as a
// second pass, where AVX-512 has kernels that read packed weights.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKED_PRODUCT_PACKED_PRODUCT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKED_PRODUCT_PACKED_PRODUCT_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/builder/step_builder.h"

namespace mxplan::packed_product {

constexpr const char* kName = "packed_product:avx2";

// True if Build takes a product with constant weights of src's rows, on this processor, and it is
// not refused: layouts aside.
bool Takes(StepBuilder* b);

// `filters` are the weights as row_product.h takes them: `columns` of them, one behind the other,
// each in the order of the samples, which are src's rows.  Both ends are dense.
void Build(StepBuilder* b, const dnnl::memory::desc& filters, int64_t columns);

}  // namespace mxplan::packed_product

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKED_PRODUCT_PACKED_PRODUCT_H_
