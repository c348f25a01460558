// Nearest and linear interpolation with half-pixel centres; the scale follows from the shapes.
#include "algorithms.h"
#include "builders.h"
#include "engine.h"

namespace mxplan {

void BuildResampling(StepBuilder* b) {
  dnnl::resampling_forward::primitive_desc pd(CpuEngine(), dnnl::prop_kind::forward_inference,
                                              ResamplingAlgorithm(b->Text("algorithm")),
                                              b->Fixed("src"), b->Desc("dst"), b->Attr());
  b->Add<dnnl::resampling_forward>(pd,
                                   {{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}});
}

}  // namespace mxplan
