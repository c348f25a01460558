// Nearest and linear interpolation with half-pixel centres; the scale follows from the shapes.
#include "onednn/algorithms.h"
#include "onednn/steps/builders.h"

namespace mxplan {

void BuildResampling(StepBuilder* b) {
  dnnl::memory::desc src = b->Fixed("src"), dst = b->Desc("dst");
  AgreeOnNames(&src, &dst);
  b->Add<dnnl::resampling_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                                   ResamplingAlgorithm(b->Text("algorithm")), src, dst);
}

}  // namespace mxplan
