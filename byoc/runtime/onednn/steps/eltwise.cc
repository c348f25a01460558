// Elementwise functions of one tensor.
#include "onednn/algorithms.h"
#include "onednn/steps/builders.h"

namespace mxplan {

void BuildEltwise(StepBuilder* b) {
  b->Add<dnnl::eltwise_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                                EltwiseAlgorithm(b->Text("algorithm")), b->Fixed("src"),
                                b->Desc("dst"), static_cast<float>(b->Real("alpha")),
                                static_cast<float>(b->Real("beta")));
}

}  // namespace mxplan
