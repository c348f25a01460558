// Names of algorithms in a region program and oneDNN's enumerators: one table for steps and
// post-ops.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ALGORITHMS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ALGORITHMS_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace mxplan {

// Each throws Unsupported on a name it does not know.
dnnl::algorithm EltwiseAlgorithm(const std::string& name);
dnnl::algorithm BinaryAlgorithm(const std::string& name);
dnnl::algorithm PoolingAlgorithm(const std::string& name);
dnnl::algorithm ReductionAlgorithm(const std::string& name);
dnnl::algorithm SoftmaxAlgorithm(const std::string& name);
dnnl::algorithm ResamplingAlgorithm(const std::string& name);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ALGORITHMS_H_
