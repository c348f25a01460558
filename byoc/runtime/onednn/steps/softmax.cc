// Softmax and its logarithm along one axis.
#include "base/error.h"
#include "onednn/algorithms.h"
#include "onednn/steps/builders.h"

namespace mxplan {

void BuildSoftmax(StepBuilder* b) {
  int64_t axis = b->Integer("axis");
  if (axis < 0 || axis >= static_cast<int64_t>(b->Rank("src"))) {
    ThrowInvalidInput("axis ", axis, " of a tensor of rank ", b->Rank("src"));
  }
  if (b->Text("algorithm") == "log_softmax" && HasOwnLogSoftmax(b)) return BuildLogSoftmax(b);
  b->Add<dnnl::softmax_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                                SoftmaxAlgorithm(b->Text("algorithm")), b->Fixed("src"),
                                b->Desc("dst"), static_cast<int>(axis));
}

}  // namespace mxplan
