// Nearest and linear interpolation with half-pixel centres; the scale follows from the shapes.
#include "onednn/algorithms.h"
#include "onednn/steps/builders.h"

namespace mxplan {

void BuildResampling(StepBuilder* b) {
  b->Add<dnnl::resampling_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                                   ResamplingAlgorithm(b->Text("algorithm")), b->Fixed("src"),
                                   b->Desc("dst"));
}

}  // namespace mxplan
