// Elementwise functions of two tensors with broadcasting, and PReLU.
#include "base/error.h"
#include "onednn/algorithms.h"
#include "onednn/channelwise/channelwise.h"
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

// A constant second operand is packed into src's layout: for a blocked one beside plain
// vectors of channels, oneDNN has reference code only.
dnnl::memory::desc SecondDesc(StepBuilder* b, const dnnl::memory::desc& src) {
  dnnl::memory::desc second = b->Fixed("src1");
  std::string tag = TagOf(src);
  if (!b->IsConstant("src1") || tag == "opaque") return second;
  return MakeDesc(second.get_dims(), second.get_data_type(), tag);
}

// A bfloat16 tensor under the first of its names (TagOf), any other as it is.  Where images are
// single points, plain and channels last name one placement; oneDNN 3.2 reads a float32 operand
// beside a bfloat16 one wrongly by the second name.
dnnl::memory::desc ByFirstName(const dnnl::memory::desc& desc) {
  bool is_short = desc.get_data_type() == dnnl::memory::data_type::bf16;
  if (!is_short || desc.get_format_kind() == dnnl::memory::format_kind::any) return desc;
  std::string tag = TagOf(desc);
  return tag == "opaque" ? desc : MakeDesc(desc.get_dims(), desc.get_data_type(), tag);
}

}  // namespace

void BuildBinary(StepBuilder* b) {
  CheckBroadcast(*b, "src1");
  if (channelwise::Build(b)) return;
  dnnl::memory::desc src = ByFirstName(b->Fixed("src"));
  b->Add<dnnl::binary>({{DNNL_ARG_SRC_0, b->Id("src")},
                        {DNNL_ARG_SRC_1, b->Id("src1")},
                        {DNNL_ARG_DST, b->Id("dst")}},
                       BinaryAlgorithm(b->Text("algorithm")), src, SecondDesc(b, src),
                       ByFirstName(b->Desc("dst")));
}

void BuildPRelu(StepBuilder* b) {
  CheckBroadcast(*b, "weights");
  b->Add<dnnl::prelu_forward>({{DNNL_ARG_SRC, b->Id("src")},
                               {DNNL_ARG_WEIGHTS, b->Id("weights")},
                               {DNNL_ARG_DST, b->Id("dst")}},
                              b->Fixed("src"), b->Weights("weights"), b->Desc("dst"));
}

}  // namespace mxplan
