// Capturing of graphs; see capture.h.
#include "cudnn/plans/capture.h"

#include "base/error.h"
#include "cudnn/device.h"

namespace mxplan {
namespace {

// While it lives, the calling thread's work goes to a stream that is being captured.
class Redirected {
 public:
  explicit Redirected(CudaStream stream) { RedirectStream(stream); }
  ~Redirected() { RedirectStream(nullptr); }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
};

}  // namespace

Capture::~Capture() {
  if (stream_ != nullptr) Taken(Cuda().cudaStreamDestroy(stream_));
}

CudaGraphExec Capture::Graph(const std::function<void()>& work) {
  const CudaApi& cuda = Cuda();
  if (stream_ == nullptr) {
    CheckCuda(cuda.cudaStreamCreateWithFlags(&stream_, kCudaStreamApart),
              "cudaStreamCreateWithFlags");
  }
  CheckCuda(cuda.cudaStreamBeginCapture(stream_, kCudaCaptureOfThread), "cudaStreamBeginCapture");
  CudaGraph graph = nullptr;
  try {
    Redirected redirected(stream_);
    work();
  } catch (...) {
    Taken(cuda.cudaStreamEndCapture(stream_, &graph));  // or the stream stays in it
    if (graph != nullptr) Taken(cuda.cudaGraphDestroy(graph));
    throw;
  }
  CheckCuda(cuda.cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
  CudaGraphExec made = nullptr;
  int status = cuda.cudaGraphInstantiateWithFlags(&made, graph, 0);
  Taken(cuda.cudaGraphDestroy(graph));
  CheckCuda(status, "cudaGraphInstantiateWithFlags");
  return made;
}

}  // namespace mxplan
