// Post-ops as the runtime's own kernels apply them, on values that are in registers.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_CODES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_CODES_H_

#include <cstdint>

#include "onednn/numbers.h"

namespace mxplan::post_ops {

struct PostOp {
  enum class Code : uint8_t {
    kRelu,
    kLeakyRelu,
    kClip,
    kRound,
    kLinear,
    kSum,
    kAdd,
    kSub,
    kMul,
    kDiv,
    kMin,
    kMax,
    kLogistic,
    kSwish,
    kTanh,
    kHardSigmoid,
    kHardSwish,
    kGeluTanh,
    kGeluErf,
    kElu
  };
  Code code = Code::kRelu;
  float alpha = 0, beta = 0;
  const float* data = nullptr;     // of a binary post-op
  bool per_channel = false;        // `data` has one element for each channel; else it is as dst
  Number number = Number::kFloat;  // of `data`
};

// Of a code between two others: those that read one more number.
constexpr bool HasOperand(PostOp::Code code) {
  return code >= PostOp::Code::kSum && code <= PostOp::Code::kMax;
}

// Post-ops that together do no more than to cut results at both ends.
struct Cut {
  bool is_all = false;  // that there is to do
  float least = 0, most = 0;
};

struct Output {
  const float* bias = nullptr;  // none: null
  const PostOp* post_ops = nullptr;
  int post_op_count = 0;
};

}  // namespace mxplan::post_ops

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_CODES_H_
