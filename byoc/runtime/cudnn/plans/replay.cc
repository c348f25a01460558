// Capturing and launching of graphs; see replay.h.
#include "cudnn/plans/replay.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cudnn/device.h"

namespace mxplan {
CudaReplay::CudaReplay(int device, StepName name) : device_(device), name_(std::move(name)) {}

CudaReplay::~CudaReplay() {
  for (const Kept& one : kept_) Taken(Cuda().cudaGraphExecDestroy(one.graph));
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
      graph = capture_.Graph(work);
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

void CudaReplay::Keep(const std::vector<void*>& addresses, CudaGraphExec graph) {
  if (kept_.size() >= kMost) {
    auto oldest = std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
      return a.last_use < b.last_use;
    });
    Taken(Cuda().cudaGraphExecDestroy(oldest->graph));
    kept_.erase(oldest);
  }
  kept_.push_back({addresses, graph, ++clock_});
}

void CudaReplay::GiveUp(const std::string& reason) {
  given_up_ = true;
  NoteFailure({name_, "the graph of the region", reason, "its steps, one by one"});
}

}  // namespace mxplan
