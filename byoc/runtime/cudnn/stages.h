// Stages of regions on a GPU: execution plans, and conversions between layouts.
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
#include "program/physical_layout.h"

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

// A tensor as a function of another one's by a function of cuDNN's that takes descriptors of both:
// arguments are src and dst.
class FunctionStage : public Stage {
 public:
  // Throws Unsupported where cuDNN has no such tensor.
  FunctionStage(std::vector<Argument> arguments, const std::string& dtype, const Dims& dims,
                const Dims& src_strides, const Dims& dst_strides);
  ~FunctionStage() override;

  CudnnDescriptor src() const { return src_; }
  CudnnDescriptor dst() const { return dst_; }
  // Calls the function; returns cuDNN's status.
  virtual int Call(CudnnHandle handle, const void* src, void* dst) const = 0;
  virtual const char* function() const = 0;
  std::unique_ptr<StageCall> NewCall() const override;

 private:
  CudnnDescriptor src_ = nullptr, dst_ = nullptr;
};

// Bytes behind the beginnings of two tensors.
struct Places {
  int64_t src = 0, dst = 0;
};

// The same elements with other strides, from a place on to another one.
class TransformStage final : public FunctionStage {
 public:
  TransformStage(std::vector<Argument> arguments, const std::string& dtype, const Dims& dims,
                 const Dims& src_strides, const Dims& dst_strides, Places places = {});
  int Call(CudnnHandle handle, const void* src, void* dst) const override;
  const char* function() const override { return "cudnnTransformTensor"; }

 private:
  Places places_;
};

// Softmax, or its logarithm, along one axis of a tensor whose layout src and dst share.
class SoftmaxStage final : public FunctionStage {
 public:
  SoftmaxStage(std::vector<Argument> arguments, const std::string& dtype, const Dims& dims,
               const PhysicalLayout& layout, size_t axis, bool logarithm);
  int Call(CudnnHandle handle, const void* src, void* dst) const override;
  const char* function() const override { return "cudnnSoftmaxForward"; }

 private:
  bool logarithm_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGES_H_
