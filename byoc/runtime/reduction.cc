// Reductions; the reduced axes are those where dst has 1.
#include "algorithms.h"
#include "builders.h"

namespace mxplan {

void BuildReduction(StepBuilder* b) {
  b->Add<dnnl::reduction>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                          ReductionAlgorithm(b->Text("algorithm")), b->Fixed("src"), b->Desc("dst"),
                          0.0f, 0.0f);
}

}  // namespace mxplan
