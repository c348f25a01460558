// Stages of regions on a GPU by functions of cuDNN's own, which no execution plan is made for:
// conversions between layouts, softmax, pools.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_FUNCTION_STAGES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_FUNCTION_STAGES_H_

#include <memory>
#include <string>
#include <vector>

#include "cudnn/api.h"
#include "library/stage.h"
#include "program/physical_layout.h"

namespace mxplan {

// Extents of a tensor, and its strides in elements.
struct Extents {
  Dims dims, strides;
};

// A tensor as a function of another one's by a function of cuDNN's that takes descriptors of both:
// arguments are src and dst.
class FunctionStage : public Stage {
 public:
  // Throws Unsupported where cuDNN has no such tensors.
  FunctionStage(std::vector<Argument> arguments, const std::string& dtype, const Extents& src,
                const Extents& dst);
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

// A conversion that cuDNN's function does in a call for each of the places: of as many axes as it
// takes, from a place on to another one.
struct Conversion {
  Extents src, dst;
  std::vector<Places> places;
};

// The same elements with other strides, from a place on to another one.  Axes that are too many for
// cuDNN are merged where they stand one behind the other in both tensors; along the shortest ones
// that are left too many, there is a call for each index.
class TransformStage final : public FunctionStage {
 public:
  TransformStage(std::vector<Argument> arguments, const std::string& dtype, const Dims& dims,
                 const Dims& src_strides, const Dims& dst_strides, Places places = {});
  int Call(CudnnHandle handle, const void* src, void* dst) const override;
  const char* function() const override { return "cudnnTransformTensor"; }

 private:
  TransformStage(std::vector<Argument> arguments, const std::string& dtype, Conversion conversion);

  std::vector<Places> places_;
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

// Windows of a pool along the axes of an image, padded by as much at the end as in front.
struct Windows {
  std::string algorithm;  // as the step names it
  Dims kernel, padding, strides;
};

// A pool of images whose layout src and dst share.  NaN is the maximum of what it is among.
class PoolingStage final : public FunctionStage {
 public:
  PoolingStage(std::vector<Argument> arguments, const std::string& dtype, const Extents& src,
               const Extents& dst, const Windows& windows);
  ~PoolingStage() override;
  int Call(CudnnHandle handle, const void* src, void* dst) const override;
  const char* function() const override { return "cudnnPoolingForward"; }

 private:
  CudnnDescriptor windows_ = nullptr;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_FUNCTION_STAGES_H_
