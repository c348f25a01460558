// The one CPU engine of the process and the calling thread's stream.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ENGINE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ENGINE_H_

#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

const dnnl::engine& CpuEngine();
dnnl::stream& ThreadStream();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ENGINE_H_
