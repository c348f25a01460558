// Capturing and launching of graphs; see replay.h.
#include "cudnn/plans/replay.h"

#include <algorithm>
#include <utility>

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

CudaReplay::CudaReplay(int device, StepName name) : device_(device), name_(std::move(name)) {}

CudaReplay::~CudaReplay() {
  for (const Kept& one : kept_) Cuda().cudaGraphExecDestroy(one.graph);
  if (stream_ != nullptr) Cuda().cudaStreamDestroy(stream_);
}

void CudaReplay::Run(const std::vector<void*>& addresses, const std::function<void()>& work) {
  if (given_up_ || !warm_) {
    work();
    warm_ = true;
    return;
  }
  CudaGraphExec graph = Find(addresses);
  in_vain_ = graph != nullptr ? 0 : in_vain_ + 1;
  if (in_vain_ > kMostInVain) {
    GiveUp("addresses are others in every call");
    return work();
  }
  try {
    if (graph == nullptr) {
      graph = Capture(work);
      Keep(addresses, graph);
    }
    CheckCuda(Cuda().cudaGraphLaunch(graph, CurrentStream(device_)), "cudaGraphLaunch");
  } catch (const Error& error) {
    GiveUp(error.what());
    work();
  }
}

CudaGraphExec CudaReplay::Find(const std::vector<void*>& addresses) {
  for (Kept& one : kept_) {
    if (one.addresses != addresses) continue;
    one.last_use = ++clock_;
    return one.graph;
  }
  return nullptr;
}

CudaGraphExec CudaReplay::Capture(const std::function<void()>& work) {
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
    cuda.cudaStreamEndCapture(stream_, &graph);  // or the stream stays in it
    if (graph != nullptr) cuda.cudaGraphDestroy(graph);
    throw;
  }
  CheckCuda(cuda.cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
  CudaGraphExec made = nullptr;
  int status = cuda.cudaGraphInstantiateWithFlags(&made, graph, 0);
  cuda.cudaGraphDestroy(graph);
  CheckCuda(status, "cudaGraphInstantiateWithFlags");
  return made;
}

void CudaReplay::Keep(const std::vector<void*>& addresses, CudaGraphExec graph) {
  if (kept_.size() >= kMost) {
    auto oldest = std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
      return a.last_use < b.last_use;
    });
    Cuda().cudaGraphExecDestroy(oldest->graph);
    kept_.erase(oldest);
  }
  kept_.push_back({addresses, graph, ++clock_});
}

void CudaReplay::GiveUp(const std::string& reason) {
  given_up_ = true;
  NoteFailure({name_, "the graph of the region", reason, "its steps, one by one"});
}

}  // namespace mxplan
