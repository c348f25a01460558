// Names of post-ops to codes of kernels; see onednn/post_ops/post_ops.h.
#include "onednn/post_ops/post_ops.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "onednn/layout.h"

namespace mxplan::post_ops {
namespace {

using dnnl::memory;

PostOp BinaryPostOp(const StepBuilder& b, const mxplan::PostOp& op, size_t axis, Types types) {
  constexpr std::pair<const char*, PostOp::Code> kCodes[] = {
      {"add", PostOp::Code::kAdd}, {"sub", PostOp::Code::kSub}, {"mul", PostOp::Code::kMul},
      {"div", PostOp::Code::kDiv}, {"min", PostOp::Code::kMin}, {"max", PostOp::Code::kMax}};
  static const float kFilledIn = 0;
  PostOp result;
  for (const auto& [name, code] : kCodes) {
    if (op.algorithm != name) continue;
    result.code = code;
    result.data = &kFilledIn;
  }
  if (!result.data) ThrowUnsupported("the kernel has no post-op ", op.algorithm);
  const memory::desc operand = b.Desc(op.value);
  const memory::desc dst = b.Desc("dst");
  Dims channels(dst.get_dims().size(), 1);
  channels[axis] = dst.get_dims()[axis];
  result.number = NumberOf(operand).value_or(Number::kFloat);
  if (SamePlacement(operand, dst)) return result;
  if (types == Types::kAny && NumberOf(operand) && SamePlaces(operand, dst)) return result;
  result.per_channel = operand.get_dims() == channels && operand.get_inner_nblks() == 0;
  if (!result.per_channel) {
    ThrowUnsupported("the kernel takes a post-op's operand for each channel, or stored as dst is");
  }
  return result;
}

}  // namespace

PostOp FunctionOf(const std::string& algorithm, double alpha, double beta) {
  constexpr std::pair<const char*, PostOp::Code> kCodes[] = {
      {"relu", PostOp::Code::kLeakyRelu},
      {"clip", PostOp::Code::kClip},
      {"clip_v2", PostOp::Code::kClip},
      {"round", PostOp::Code::kRound},
      {"linear", PostOp::Code::kLinear},
      {"logistic", PostOp::Code::kLogistic},
      {"swish", PostOp::Code::kSwish},
      {"tanh", PostOp::Code::kTanh},
      {"hardsigmoid", PostOp::Code::kHardSigmoid},
      {"hardswish", PostOp::Code::kHardSwish},
      {"gelu_tanh", PostOp::Code::kGeluTanh},
      {"gelu_erf", PostOp::Code::kGeluErf},
      {"elu", PostOp::Code::kElu}};
  for (const auto& [name, code] : kCodes) {
    if (algorithm != name) continue;
    PostOp result;
    result.code = code == PostOp::Code::kLeakyRelu && alpha == 0 ? PostOp::Code::kRelu : code;
    result.alpha = static_cast<float>(alpha);
    result.beta = static_cast<float>(beta);
    return result;
  }
  ThrowUnsupported("the kernel has no post-op ", algorithm);
}

std::vector<PostOp> PostOpsOf(const StepBuilder& b, size_t axis, Types types) {
  std::vector<PostOp> result;
  for (const mxplan::PostOp& op : b.step().post_ops) {
    switch (op.kind) {
      case mxplan::PostOp::Kind::kEltwise:
        result.push_back(FunctionOf(op.algorithm, op.alpha, op.beta));
        break;
      case mxplan::PostOp::Kind::kBinary:
        result.push_back(BinaryPostOp(b, op, axis, types));
        break;
      case mxplan::PostOp::Kind::kSum:
        result.push_back({.code = PostOp::Code::kSum, .alpha = static_cast<float>(op.alpha)});
        break;
      default:
        ThrowUnsupported("the kernel takes eltwise, binary and sum post-ops");
    }
  }
  if (result.size() > kMaxPostOps) ThrowUnsupported(result.size(), " post-ops");
  return result;
}

bool HasPostOps(const StepBuilder& b, Types types) {
  try {
    PostOpsOf(b, 1, types);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool HasFloatPostOps(const StepBuilder& b) {
  for (const mxplan::PostOp& op : b.step().post_ops) {
    if (op.kind != mxplan::PostOp::Kind::kBinary) continue;
    if (b.Desc(op.value).get_data_type() != memory::data_type::f32) return false;
  }
  return HasPostOps(b);
}

bool HasRealResult(StepBuilder* b) {
  const memory::desc dst = b->Desc("dst");
  if (!IsReal(dst) || !HasPostOps(*b)) return false;
  if (b->Has("bias") && b->Desc("bias").get_data_type() != memory::data_type::f32) return false;
  const std::vector<PostOp> operators = PostOpsOf(*b);
  for (size_t i = 0; i < operators.size(); ++i) {
    if (!operators[i].data) continue;
    const auto wanted = operators[i].per_channel ? memory::data_type::f32 : dst.get_data_type();
    if (b->Desc(b->step().post_ops[i].value).get_data_type() != wanted) return false;
  }
  return true;
}

void BindPostOps(const StepBuilder& b, std::vector<MemoryArgument>* arguments) {
  for (const mxplan::PostOp& op : b.step().post_ops) {
    if (op.kind != mxplan::PostOp::Kind::kBinary) continue;
    arguments->push_back({0, Argument::Source::kValue, op.value, b.Desc(op.value)});
  }
}

void BindBiasAndPostOps(StepBuilder* b, std::vector<MemoryArgument>* arguments) {
  if (b->Has("bias")) {
    b->Fixed("bias");
    arguments->push_back({0, Argument::Source::kValue, b->Id("bias"), b->Desc("bias")});
  }
  BindPostOps(*b, arguments);
}

}  // namespace mxplan::post_ops
