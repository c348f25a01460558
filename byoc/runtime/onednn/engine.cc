// The one CPU engine of the process and the calling thread's stream.
#include "onednn/engine.h"

namespace mxplan {

const dnnl::engine& CpuEngine() {
  // Never destroyed: modules that outlive main's statics still hold primitives of it.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

void OneDnnStream::Wait() {
  if (dnnl_stream_wait(native_.get()) != dnnl_success) {
    ThrowInternal("oneDNN could not wait for a stream");
  }
}

OneDnnStream* StreamOfThread() {
  thread_local OneDnnStream stream;
  return &stream;
}

}  // namespace mxplan
