// The one CPU engine of the process and the calling thread's stream.
#include "onednn/engine.h"

namespace mxplan {

const dnnl::engine& CpuEngine() {
  // Never destroyed: modules that outlive main's statics still hold primitives of it.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& ThreadStream() {
  thread_local dnnl::stream stream(CpuEngine());
  return stream;
}

}  // namespace mxplan
