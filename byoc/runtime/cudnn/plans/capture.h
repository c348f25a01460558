// Work of the calling thread as a CUDA graph.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_CAPTURE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_CAPTURE_H_

#include <functional>

#include "cudnn/api.h"

namespace mxplan {

// Captures in a stream of its own, since the default stream cannot be captured.
class Capture {
 public:
  Capture() = default;
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // The graph of `work`, which is not done by that; whoever asked destroys it.  `work` takes the
  // thread's queue anew (ThreadQueue).  Throws Error where it cannot be captured.
  CudaGraphExec Graph(const std::function<void()>& work);

 private:
  CudaStream stream_ = nullptr;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_CAPTURE_H_
