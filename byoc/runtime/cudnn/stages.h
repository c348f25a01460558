// Stages of regions on a GPU that run by execution plans.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudnn/plans/failures.h"
#include "cudnn/plans/plan.h"
#include "library/stage.h"

namespace mxplan {

// A step by its execution plans: the first runs, and one that fails gives way to the next, from
// then on and for every thread.  Arguments are values in the order of `uids`, then the workspace
// where a plan has one.
class PlanStage final : public Stage {
 public:
  // `uids` are all that a plan has.  Throws Unsupported where no plan can be built.
  PlanStage(std::vector<Argument> arguments, std::vector<int64_t> uids,
            std::vector<EnginePlan> plans, StepName name, int device);
  std::unique_ptr<StageCall> NewCall() const override;

  // The plan that runs now, counted from 0; it is built.
  size_t current() const { return current_.load(); }
  const EnginePlan& plan(size_t number) const { return plans_[number]; }
  CudnnDescriptor descriptor(size_t number) const { return loaded_[number]->descriptor(); }
  // Places of a plan's tensors among the arguments.
  const std::vector<size_t>& places(size_t number) const { return places_[number]; }
  bool has_workspace() const { return has_workspace_; }
  // The plan failed, for this reason: makes the next one the current one, and notes it.  Throws
  // Unsupported with the reason where there is none.
  void GiveWay(size_t number, const std::string& reason) const;

 private:
  // Builds the first plan from `number` on that can be built.
  void Load(size_t number, const std::string& reason) const;

  const std::vector<EnginePlan> plans_;
  const StepName name_;
  const int device_;
  std::vector<std::vector<size_t>> places_;
  bool has_workspace_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<LoadedPlan>> loaded_;  // none of those that wait
  mutable std::atomic<size_t> current_{0};
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGES_H_
