// The steps of a region as one CUDA graph: captured when they run again, then launched as one.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_REPLAY_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_REPLAY_H_

#include <functional>
#include <string>
#include <vector>

#include "cudnn/plans/capture.h"
#include "cudnn/plans/failures.h"
#include "library/library.h"

namespace mxplan {

// The first run builds plans and is not captured.  A graph is for the addresses that it was
// captured with: others are captured as well, and the one that was used longest ago goes.  Where
// the steps cannot be captured, or addresses are others in every run, they run one by one from then
// on, which is noted (failures.h).
class CudaReplay final : public Replay {
 public:
  // `name` is that of a step, for notes.
  CudaReplay(int device, StepName name);
  ~CudaReplay() override;
  void Run(const std::vector<void*>& addresses, const std::function<void()>& work) override;

 private:
  struct Kept {
    std::vector<void*> addresses;
    CudaGraphExec graph = nullptr;
    int64_t last_use = 0;
  };

  static constexpr size_t kMost = 4;     // graphs that are kept
  static constexpr int kMostInVain = 8;  // captures one after another without a launch of a kept

  CudaGraphExec Find(const std::vector<void*>& addresses);
  void Keep(const std::vector<void*>& addresses, CudaGraphExec graph);
  void GiveUp(const std::string& reason);

  const int device_;
  const StepName name_;
  Capture capture_;
  std::vector<Kept> kept_;
  int64_t clock_ = 0;
  int in_vain_ = 0;
  bool warm_ = false, given_up_ = false;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_REPLAY_H_
