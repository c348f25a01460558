// Steps on empty tensors, which symbols bring about: oneDNN refuses some, and leaves others undone.
//
//     dst empty            nothing to do
//     src or weights empty a sum over nothing: 0, then bias and post-ops as ever; a product is 1,
//                          the largest number -inf, the smallest inf, a mean no number
#include <algorithm>
#include <cfloat>
#include <limits>
#include <string>

#include "base/error.h"
#include "onednn/builder/fill.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

bool HasNoElements(const Dims& dims) {
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

// The bias as something to add to dst: a vector of channels gets dst's rank.
dnnl::memory::desc SpreadBias(StepBuilder* b, size_t rank) {
  dnnl::memory::desc bias = b->Fixed("bias");
  Dims dims = bias.get_dims();
  if (dims.size() == rank) return bias;
  Dims spread(rank, 1);
  spread[1] = dims[0];
  return MakeDesc(spread, bias.get_data_type(), PlainTag(rank));
}

// The result of a sum, or another reduction, over nothing, before bias and post-ops.
float Identity(const StepBuilder& b) {
  using Limits = std::numeric_limits<float>;
  const std::string& kind = b.step().kind;
  if (kind != "pooling" && kind != "reduction") return 0.0f;
  const std::string& algorithm = b.Text("algorithm");
  if (kind == "pooling") return algorithm == "max" ? -FLT_MAX : 0.0f;
  if (algorithm == "max") return -Limits::infinity();
  if (algorithm == "min") return Limits::infinity();
  if (algorithm == "mul") return 1.0f;
  return algorithm == "mean" ? Limits::quiet_NaN() : 0.0f;
}

void BuildFilled(StepBuilder* b) {
  if (b->Has("src_scale")) ThrowUnsupported("an empty src of integers");
  if (b->HasPostOp(PostOp::Kind::kSum) || b->HasPostOp(PostOp::Kind::kDepthwise)) {
    ThrowUnsupported("an empty src with a sum or a convolution behind it");
  }
  dnnl::memory::desc dst = b->Fixed("dst");
  int id = b->Id("dst");
  MemoryArgument whole{DNNL_ARG_DST, Argument::Source::kValue, id, dst};
  b->AddStage(MakeFill(whole, Identity(*b)), "fill");
  if (b->Has("bias")) {
    dnnl::memory::desc bias = SpreadBias(b, dst.get_dims().size());
    b->Add<dnnl::binary>(
        {{DNNL_ARG_SRC_0, id}, {DNNL_ARG_SRC_1, b->Id("bias"), bias}, {DNNL_ARG_DST, id}},
        dnnl::algorithm::binary_add, dst, bias, dst);
  } else if (!b->step().post_ops.empty()) {
    AddIdentity(b, id, dst);
  }
}

}  // namespace

void AddIdentity(StepBuilder* b, int src, const dnnl::memory::desc& desc) {
  b->Add<dnnl::eltwise_forward>({{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, b->Id("dst")}},
                                dnnl::algorithm::eltwise_linear, desc, b->Desc("dst"), 1.0f, 0.0f);
}

bool BuildEmpty(StepBuilder* b) {
  if (b->step().kind == "recurrent") return false;  // over no steps it still hands on states
  // Without descriptors, or with "any" to be settled, the builder of the kind says what is wrong.
  for (const Operand& operand : b->step().operands) {
    if (b->Get(operand.value).IsAny()) return false;
  }
  if (HasNoElements(b->Get("dst").dims)) return true;
  const std::string& kind = b->step().kind;
  bool sums = kind == "convolution" || kind == "deconvolution" || kind == "matmul" ||
              kind == "inner_product" || kind == "pooling" || kind == "reduction" ||
              kind == "convolution_backward_weights";
  if (!sums || !HasNoElements(b->Get("src").dims)) return false;
  BuildFilled(b);
  return true;
}

}  // namespace mxplan
