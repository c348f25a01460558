// Elementwise functions of two tensors with broadcasting, and PReLU.
#include "base/error.h"
#include "onednn/algorithms.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

// oneDNN broadcasts the second operand only.
void CheckBroadcast(const StepBuilder& b, const char* second) {
  const Dims& src = b.Get("src").dims;
  const Dims& other = b.Get(second).dims;
  const Dims& dst = b.Get("dst").dims;
  if (src != dst) ThrowUnsupported("src would have to be broadcast");
  if (other.size() != dst.size()) {
    ThrowInvalidInput(second, " has rank ", other.size(), ", dst ", dst.size());
  }
  for (size_t i = 0; i < dst.size(); ++i) {
    if (other[i] != dst[i] && other[i] != 1) {
      ThrowInvalidInput(second, " has ", other[i], " on axis ", i, ", dst ", dst[i]);
    }
  }
}

// A constant second operand is packed into src's layout: in a blocked one, oneDNN has but a
// reference implementation for plain vectors of channels.
dnnl::memory::desc SecondDesc(StepBuilder* b, const dnnl::memory::desc& src) {
  dnnl::memory::desc second = b->Fixed("src1");
  std::string tag = TagOf(src);
  if (!b->IsConstant("src1") || tag == "opaque") return second;
  return MakeDesc(second.get_dims(), second.get_data_type(), tag);
}

}  // namespace

void BuildBinary(StepBuilder* b) {
  CheckBroadcast(*b, "src1");
  dnnl::memory::desc src = b->Fixed("src");
  b->Add<dnnl::binary>({{DNNL_ARG_SRC_0, b->Id("src")},
                        {DNNL_ARG_SRC_1, b->Id("src1")},
                        {DNNL_ARG_DST, b->Id("dst")}},
                       BinaryAlgorithm(b->Text("algorithm")), src, SecondDesc(b, src),
                       b->Desc("dst"));
}

void BuildPRelu(StepBuilder* b) {
  CheckBroadcast(*b, "weights");
  b->Add<dnnl::prelu_forward>({{DNNL_ARG_SRC, b->Id("src")},
                               {DNNL_ARG_WEIGHTS, b->Id("weights")},
                               {DNNL_ARG_DST, b->Id("dst")}},
                              dnnl::prop_kind::forward_inference, b->Fixed("src"),
                              b->Weights("weights"), b->Desc("dst"));
}

}  // namespace mxplan
