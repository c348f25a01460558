// Stages of regions on a GPU: execution plans, and conversions between layouts.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGES_H_

#include <memory>
#include <string>
#include <vector>

#include "cudnn/plan.h"
#include "library/stage.h"
#include "program/physical_layout.h"

namespace mxplan {

// Arguments are those of the record's uids, then the workspace where the plan has one.
class PlanStage final : public Stage {
 public:
  PlanStage(std::vector<Argument> arguments, const PlanRecord& record, CudnnHandle handle);
  std::unique_ptr<StageCall> NewCall() const override;

  const LoadedPlan& plan() const { return plan_; }
  const std::vector<int64_t>& uids() const { return uids_; }

 private:
  std::vector<int64_t> uids_;
  LoadedPlan plan_;
};

// A tensor, with one layout and another, element by element: arguments are src and dst.
class TransformStage final : public Stage {
 public:
  // Throws Unsupported where cuDNN has no such tensor.
  TransformStage(std::vector<Argument> arguments, const Dims& dims, const std::string& dtype,
                 const PhysicalLayout& src, const PhysicalLayout& dst);
  ~TransformStage() override;
  std::unique_ptr<StageCall> NewCall() const override;

  CudnnDescriptor src() const { return src_; }
  CudnnDescriptor dst() const { return dst_; }

 private:
  CudnnDescriptor src_ = nullptr, dst_ = nullptr;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGES_H_
