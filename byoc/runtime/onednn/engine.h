// The one CPU engine of the process and the calling thread's stream.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ENGINE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ENGINE_H_

#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"
#include "library/stage.h"

namespace mxplan {

const dnnl::engine& CpuEngine();

class OneDnnStream final : public Stream {
 public:
  OneDnnStream() : native_(CpuEngine()) {}
  void Wait() override;
  dnnl::stream& native() { return native_; }

 private:
  dnnl::stream native_;
};

OneDnnStream* StreamOfThread();
inline dnnl::stream& ThreadStream() { return StreamOfThread()->native(); }

// Calls `function`; what oneDNN throws in it becomes Internal.
template <typename F>
auto Translated(const F& function) -> decltype(function()) {
  try {
    return function();
  } catch (const dnnl::error& error) {
    ThrowInternal("oneDNN ", error.what());
  }
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ENGINE_H_
