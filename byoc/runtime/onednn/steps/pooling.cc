// Max and average pooling, and their gradients.  The end padding is whatever makes dst's shape come
// out (ceil mode).
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "onednn/algorithms.h"
#include "onednn/maxima/maxima.h"
#include "onednn/steps/builders.h"

namespace mxplan {

namespace {

struct Windows {
  Dims kernel, strides, dilates, padding_l, padding_r;
};

// `result` is the role of what the pool writes, or of the gradient of that.
Windows ReadWindows(const StepBuilder& b, const char* result) {
  const Dims& src = b.Get("src").dims;
  const Dims& dst = b.Get(result).dims;
  if (src.size() < 3 || src.size() > 5 || dst.size() != src.size()) {
    ThrowUnsupported("src has rank ", src.size(), ", ", result, " ", dst.size());
  }
  size_t axes = src.size() - 2;
  Windows w;
  w.kernel = b.Integers("kernel", axes, 1);
  w.strides = b.Integers("strides", axes, 1);
  w.dilates = b.Integers("dilation", axes, 1);
  w.padding_l = b.Integers("padding", axes, 0);
  for (size_t i = 0; i < axes; ++i) {
    int64_t reach = (w.kernel[i] - 1) * w.dilates[i] + 1;
    int64_t end = (dst[i + 2] - 1) * w.strides[i] + reach - src[i + 2] - w.padding_l[i];
    if (end >= reach || w.padding_l[i] >= reach) {
      ThrowUnsupported("a window of axis ", i + 2, " lies in the padding alone");
    }
    // The last window may also stop short of src's end.
    w.padding_r.push_back(std::max<int64_t>(end, 0));
    w.dilates[i] -= 1;
  }
  return w;
}

}  // namespace

void BuildPooling(StepBuilder* b) {
  Windows w = ReadWindows(*b, "dst");
  if (b->Text("algorithm") == "max" &&
      maxima::Build(b, {w.kernel, w.strides, w.dilates, w.padding_l})) {
    return;
  }
  dnnl::memory::desc src = b->Fixed("src"), dst = b->Desc("dst");
  AgreeOnNames(&src, &dst);
  b->Add<dnnl::pooling_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                                PoolingAlgorithm(b->Text("algorithm")), src, dst, w.strides,
                                w.kernel, w.dilates, w.padding_l, w.padding_r);
}

// Of a maximum, which element each window took is found again here: the forward step keeps nothing.
void BuildPoolingBackward(StepBuilder* b) {
  Windows w = ReadWindows(*b, "gradient");
  dnnl::algorithm algorithm = PoolingAlgorithm(b->Text("algorithm"));
  dnnl::memory::desc src = b->Fixed("src"), gradient = b->Fixed("gradient");
  AgreeOnNames(&src, &gradient);
  std::vector<StepBuilder::Binding> bindings = {{DNNL_ARG_DIFF_DST, b->Id("gradient")},
                                                {DNNL_ARG_DIFF_SRC, b->Id("dst")}};
  if (algorithm == dnnl::algorithm::pooling_max) {
    StepBuilder::Binding workspace = {DNNL_ARG_WORKSPACE, StepBuilder::kOfTheStep};
    b->AddForTraining<dnnl::pooling_forward>(
        {{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, StepBuilder::kOfTheStep}, workspace},
        algorithm, src, gradient, w.strides, w.kernel, w.dilates, w.padding_l, w.padding_r);
    bindings.push_back(workspace);
  }
  b->AddBackward<dnnl::pooling_backward>(
      bindings,
      StepBuilder::HintOf<dnnl::pooling_forward>(algorithm, src, gradient, w.strides, w.kernel,
                                                 w.dilates, w.padding_l, w.padding_r),
      algorithm, b->Desc("dst"), gradient, w.strides, w.kernel, w.dilates, w.padding_l,
      w.padding_r);
}

}  // namespace mxplan
