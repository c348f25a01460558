// Reductions; the reduced axes are those where dst has 1.
#include "algorithms.h"
#include "builders.h"
#include "engine.h"

namespace mxplan {

void BuildReduction(StepBuilder* b) {
  dnnl::reduction::primitive_desc pd(CpuEngine(), ReductionAlgorithm(b->Text("algorithm")),
                                     b->Fixed("src"), b->Desc("dst"), 0.0f, 0.0f, b->Attr());
  b->Add<dnnl::reduction>(pd, {{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}});
}

}  // namespace mxplan
