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
  const std::vector<PlanScalar>& scalars() const { return scalars_; }

 private:
  std::vector<int64_t> uids_;  // of tensors, then of scalars
  std::vector<PlanScalar> scalars_;
  LoadedPlan plan_;
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

// The same elements with other strides, `begin` bytes behind the beginning of dst.
class TransformStage final : public FunctionStage {
 public:
  TransformStage(std::vector<Argument> arguments, const std::string& dtype, const Dims& dims,
                 const Dims& src_strides, const Dims& dst_strides, int64_t begin = 0);
  int Call(CudnnHandle handle, const void* src, void* dst) const override;
  const char* function() const override { return "cudnnTransformTensor"; }

 private:
  int64_t begin_;
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
