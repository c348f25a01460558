// A builder for each kind of step: looks at operands, and adds kernels.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_BUILDERS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_BUILDERS_H_

#include <optional>
#include <string>
#include <vector>

#include "host/kernels/kernels.h"
#include "host/nest.h"
#include "host/stage.h"
#include "library/executable.h"
#include "program/resolved.h"
#include "program/step_attributes.h"

namespace mxplan::host {

// A step as its builder sees it.
class StepBuilder {
 public:
  // Values in layout "any" become plain, or dst what src is where the kind keeps layouts.
  StepBuilder(const Step& step, Resolved* resolved);

  const Step& step() const { return step_; }
  int Id(const char* role) const;
  const ResolvedValue& Get(int value) const;
  const ResolvedValue& Get(const char* role) const { return Get(Id(role)); }
  const std::string& Dtype(const char* role) const;
  // The type of an operand that is computed with; throws Unsupported for others.
  Type ComputedType(const char* role) const;
  int64_t ElementBytes(const char* role) const { return Get(role).layout.element_bytes; }
  // Elements of an operand from one index of dst to the next, 0 where it is broadcast.  Throws
  // Unsupported where it stands in blocks.
  Dims Strides(const char* role) const;
  // The number of elements of every operand, padding counted, where all stand alike: element for
  // element, and for no other purpose.
  std::optional<int64_t> FlatElements(const std::vector<const char*>& roles) const;
  bool HasPadding(const char* role) const;

  // Adds a kernel that is called with the addresses of these operands, or values.
  void Add(const std::vector<const char*>& roles, Kernel kernel);
  void AddFor(const std::vector<int>& values, Kernel kernel);
  // Behind the operands of kernels that are added from now on: the scratchpad.
  void NeedScratchpad(int64_t bytes) { executable_.scratchpad_bytes = bytes; }
  Executable Take() { return std::move(executable_); }

 private:
  const Step& step_;
  Resolved* resolved_;
  Executable executable_;
};

// Loops over all elements of dst with the operands `roles`, of which the first is dst.  Where all
// stand alike, blocks and padding are walked through as they stand; `keeps_zero`: what is computed
// from zeros is zero, so padding stays what it is.
template <size_t kOperands>
Nest<kOperands> ElementwiseNest(const StepBuilder& b,
                                const std::array<const char*, kOperands>& roles, bool keeps_zero) {
  const auto flat = b.FlatElements({roles.begin(), roles.end()});
  if (flat && (keeps_zero || !b.HasPadding("dst"))) {
    Loop<kOperands> loop{*flat, {}};
    loop.strides.fill(1);
    return {loop};
  }
  const Dims& dims = b.Get("dst").dims;
  Nest<kOperands> loops(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) loops[i].extent = dims[i];
  for (size_t k = 0; k < kOperands; ++k) {
    const Dims strides = b.Strides(roles[k]);
    for (size_t i = 0; i < dims.size(); ++i) loops[i].strides[k] = strides[i];
  }
  return Joined(std::move(loops));
}

void BuildBinary(StepBuilder* b);
void BuildCast(StepBuilder* b);
void BuildCompare(StepBuilder* b);
void BuildCumulativeSum(StepBuilder* b);
void BuildEltwise(StepBuilder* b);
void BuildExtremeIndex(StepBuilder* b);
void BuildGather(StepBuilder* b);
void BuildGatherElements(StepBuilder* b);
void BuildGatherNd(StepBuilder* b);
void BuildGatherPlaces(StepBuilder* b);
void BuildGridSample(StepBuilder* b);
void BuildConcat(StepBuilder* b);
void BuildPut(StepBuilder* b);
void BuildRanking(StepBuilder* b);
void BuildReduction(StepBuilder* b);
void BuildReorder(StepBuilder* b);
void BuildResize(StepBuilder* b);
void BuildScatter(StepBuilder* b);
void BuildScatterElements(StepBuilder* b);
void BuildSelect(StepBuilder* b);
void BuildStridedSlice(StepBuilder* b);

// The executable of a step.  Throws Unsupported for what there is no kernel for.
Executable BuildStep(const Step& step, Resolved* resolved);

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_BUILDERS_H_
