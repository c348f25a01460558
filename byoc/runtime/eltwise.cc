// Elementwise functions of one tensor.
#include "algorithms.h"
#include "builders.h"
#include "engine.h"

namespace mxplan {

void BuildEltwise(StepBuilder* b) {
  dnnl::eltwise_forward::primitive_desc pd(CpuEngine(), dnnl::prop_kind::forward_inference,
                                           EltwiseAlgorithm(b->Text("algorithm")), b->Fixed("src"),
                                           b->Desc("dst"), static_cast<float>(b->Real("alpha")),
                                           static_cast<float>(b->Real("beta")), b->Attr());
  b->Add<dnnl::eltwise_forward>(pd, {{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}});
}

}  // namespace mxplan
