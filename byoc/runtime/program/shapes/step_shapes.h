// The rules for the shapes of a step's operands, a function for each kind that has its own.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_STEP_SHAPES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_STEP_SHAPES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "program/resolved.h"

namespace mxplan {

// The operands that the library which runs a step takes.
struct StepLimits {
  int64_t image_bytes = INT64_MAX;  // of an image under windows, its padding counted
  size_t pieces = SIZE_MAX;         // of a concatenation
  bool float16 = false;             // computes in float16 too, not in float32 alone
};

// A step with numbers for its shapes.
class StepView {
 public:
  StepView(const Step& step, const Resolved& resolved, const StepLimits& limits)
      : step_(step), resolved_(resolved), limits_(limits) {}

  const Step& step() const { return step_; }
  const Resolved& resolved() const { return resolved_; }
  const StepLimits& limits() const { return limits_; }
  bool Has(const char* role) const { return step_.Find(role) >= 0; }
  // Of the first operand in `role`; throws InvalidInput if there is none.
  const Dims& Shape(const char* role) const;
  const Dims& ShapeOf(int value) const { return resolved_.values[static_cast<size_t>(value)].dims; }

 private:
  const Step& step_;
  const Resolved& resolved_;
  const StepLimits& limits_;
};

std::string ToString(const Dims& shape);

// Throw InvalidInput unless the operand has this shape, or one that is broadcast to it.
void ExpectShape(const StepView& s, const char* role, const Dims& expected);
void ExpectBroadcast(const std::string& what, const Dims& shape, const Dims& to);

// The shape that a convolution has before a depthwise post-op, and that of its result.
Dims BeforeDepthwise(const StepView& s);

void CheckConvolution(const StepView& s);
void CheckDeconvolution(const StepView& s);
void CheckConvolutionBackwardWeights(const StepView& s);
void CheckMatMul(const StepView& s);
void CheckInnerProduct(const StepView& s);
void CheckFewBitsProduct(const StepView& s);
void CheckGroupedProduct(const StepView& s);
void CheckPooling(const StepView& s);
void CheckPoolingBackward(const StepView& s);
void CheckBatchNormalization(const StepView& s);
void CheckLayerNormalization(const StepView& s);
void CheckRotary(const StepView& s);
void CheckSqueezeExcite(const StepView& s);
void CheckLrn(const StepView& s);
void CheckSoftmax(const StepView& s);
void CheckSameShape(const StepView& s);
void CheckBinary(const StepView& s);
void CheckPRelu(const StepView& s);
void CheckReduction(const StepView& s);
void CheckRecurrent(const StepView& s);
void CheckRecurrentTraining(const StepView& s);
void CheckRecurrentBackward(const StepView& s);
void CheckAttention(const StepView& s);
void CheckConcat(const StepView& s);
void CheckShuffle(const StepView& s);
void CheckResampling(const StepView& s);
void CheckGatherNd(const StepView& s);
void CheckGatherPlaces(const StepView& s);
void CheckGridSample(const StepView& s);
void CheckPad(const StepView& s);
void CheckSlice(const StepView& s);
void CheckStridedSlice(const StepView& s);
void CheckGather(const StepView& s);
void CheckGatherElements(const StepView& s);
void CheckScatterElements(const StepView& s);
void CheckPut(const StepView& s);
void CheckScatter(const StepView& s);
void CheckSelect(const StepView& s);
void CheckCumulativeSum(const StepView& s);
void CheckExtremeIndex(const StepView& s);
void CheckRanking(const StepView& s);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_STEP_SHAPES_H_
