// Reductions; the reduced axes are those where dst has 1.
#include "onednn/algorithms.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

// dst = src, whatever the layouts, then the post-ops.
void BuildIdentity(StepBuilder* b) {
  dnnl::memory::desc src = b->Fixed("src");
  dnnl::memory::desc dst = b->Fixed("dst");
  if (SamePlacement(src, dst)) return AddIdentity(b, b->Id("src"), dst);
  b->AddReorder(b->Id("src"), src, b->Id("dst"), dst);
  if (!b->step().post_ops.empty()) AddIdentity(b, b->Id("dst"), dst);
}

}  // namespace

void BuildReduction(StepBuilder* b) {
  if (b->Get("src").dims == b->Get("dst").dims) {  // symbols that are 1; oneDNN refuses
    return BuildIdentity(b);
  }
  b->Add<dnnl::reduction>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                          ReductionAlgorithm(b->Text("algorithm")), b->Fixed("src"), b->Desc("dst"),
                          0.0f, 0.0f);
}

}  // namespace mxplan
