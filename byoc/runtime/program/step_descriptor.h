// A step with numbers for its symbols, as typed facts and as a text: what refusals of
// implementations are decided and remembered by.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_DESCRIPTOR_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_DESCRIPTOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "program/resolved.h"

namespace mxplan {

struct StepDescriptor {
  // Equal for steps that compute the same in the same layouts, whatever they are called, prefer or
  // share bytes with: kind, attributes, operands in their order, post-ops.
  std::string text;

  std::string kind;
  std::string algorithm;  // '' where the kind has none
  int64_t groups = 1;
  Dims src, weights, dst;  // the first src; empty where there is no such operand
  std::string src_layout, weights_layout, dst_layout;
  Dims kernel, strides, dilation;  // of windows; empty where there are none
  Dims padding;                    // in front of every axis, then behind
  bool has_bias = false;
  std::vector<PostOp> post_ops;

  // Channels of one group; 0 where there is no axis for them.
  int64_t SrcChannels() const { return src.size() < 2 ? 0 : src[1] / groups; }
  int64_t DstChannels() const { return dst.size() < 2 ? 0 : dst[1] / groups; }
};

StepDescriptor DescribeStep(const Step& step, const Resolved& resolved);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_DESCRIPTOR_H_
