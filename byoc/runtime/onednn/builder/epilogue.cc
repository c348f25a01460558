// Bias and post-ops of a step as stages of their own: StepBuilder::BuildEpilogueApart and
// SetFunctionApart in onednn/builder/step_builder.h.
#include <algorithm>
#include <cstring>

#include "onednn/algorithms.h"
#include "onednn/builder/step_builder.h"
#include "onednn/functions/functions.h"

namespace mxplan {
namespace {

using dnnl::memory;

bool IsOnDst(const PostOp& op) {
  return op.kind == PostOp::Kind::kEltwise || op.kind == PostOp::Kind::kBinary;
}

}  // namespace

bool StepBuilder::BuildEpilogueApart(const std::function<void()>& bare) {
  const std::vector<Refusal>& refusals = choice_.refusals;
  bool wanted = std::any_of(refusals.begin(), refusals.end(),
                            [](const Refusal& refusal) { return refusal.with_epilogue; });
  // A sum needs what dst held before, which the bare step overwrites.
  const std::vector<PostOp>& post_ops = step_.post_ops;
  if (!wanted || Has("src_scale") || !std::all_of(post_ops.begin(), post_ops.end(), IsOnDst))
    return false;
  const Choice whole = choice_;
  auto with_epilogue = [](const Refusal& refusal) { return refusal.with_epilogue; };
  choice_.refusals.erase(
      std::remove_if(choice_.refusals.begin(), choice_.refusals.end(), with_epilogue),
      choice_.refusals.end());
  post_ops_.clear();
  bare();
  std::string served = executable_.implementation;
  AddEpilogue();
  choice_ = whole;
  post_ops_ = post_ops;
  std::vector<RefusedImplementation> refused;
  if (MayRun(choice_, served, &refused)) refused.clear();
  executable_.refused.insert(executable_.refused.end(), refused.begin(), refused.end());
  return KeepsWhole();
}

void StepBuilder::AddEpilogue() {
  const std::vector<PostOp>& all = step_.post_ops;
  size_t next = 0;
  auto rest = [&] {
    return std::vector<PostOp>(all.begin() + static_cast<std::ptrdiff_t>(next), all.end());
  };
  if (Has("bias")) {
    memory::desc bias = Desc("bias");
    Dims dims(Rank("dst"), 1);
    dims[1] = bias.get_dims()[0];
    post_ops_ = rest();
    memory::desc seen = MakeDesc(dims, bias.get_data_type(), PlainTag(dims.size()));
    return AddBinaryOnDst(dnnl::algorithm::binary_add, {DNNL_ARG_SRC_1, Id("bias"), seen, bias});
  }
  while (next < all.size()) {
    const PostOp& op = all[next++];
    if (op.kind == PostOp::Kind::kBinary) {
      post_ops_ = rest();
      return AddBinaryOnDst(BinaryAlgorithm(op.algorithm), {DNNL_ARG_SRC_1, op.value});
    }
    post_ops_.clear();
    Add<dnnl::eltwise_forward>({{DNNL_ARG_SRC, Id("dst")}, {DNNL_ARG_DST, Id("dst")}},
                               EltwiseAlgorithm(op.algorithm), Desc("dst"), Desc("dst"),
                               static_cast<float>(op.alpha), static_cast<float>(op.beta));
  }
}

void StepBuilder::AddBinaryOnDst(dnnl::algorithm algorithm, const Binding& second) {
  memory::desc dst = Desc("dst");
  memory::desc other = second.seen.is_zero() ? Desc(second.value) : second.seen;
  // As in BuildBinary: oneDNN wants constants in dst's layout.
  std::string tag = TagOf(dst);
  if (program_->IsConstant(second.value) && tag != "opaque")
    other = MakeDesc(other.get_dims(), other.get_data_type(), tag);
  Add<dnnl::binary>({{DNNL_ARG_SRC_0, Id("dst")}, second, {DNNL_ARG_DST, Id("dst")}}, algorithm,
                    dst, other, dst);
}

std::optional<PostOp> StepBuilder::SetFunctionApart() {
  if (!functions::TakesLast(*this, post_ops_)) return std::nullopt;
  for (const Refusal& refusal : choice_.refusals) {
    // By itself, or as the end of a step that was refused as a whole.
    const std::string& name = refusal.implementation;
    const size_t at = name.rfind(functions::kName);
    if (at == std::string::npos || at + std::strlen(functions::kName) != name.size()) continue;
    MayRun(choice_, name, &executable_.refused);
    return std::nullopt;
  }
  PostOp function = post_ops_.back();
  post_ops_.pop_back();
  return function;
}

void StepBuilder::AddFunction(const PostOp& function) {
  functions::Add(this, function);
  post_ops_.push_back(function);
}

}  // namespace mxplan
