// Max and average pooling.  The end padding is whatever makes dst's shape come out (ceil mode).
#include <algorithm>

#include "base/error.h"
#include "onednn/algorithms.h"
#include "onednn/steps/builders.h"

namespace mxplan {

void BuildPooling(StepBuilder* b) {
  const Dims& src = b->Get("src").dims;
  const Dims& dst = b->Get("dst").dims;
  if (src.size() < 3 || src.size() > 5 || dst.size() != src.size()) {
    ThrowUnsupported("src has rank ", src.size(), ", dst ", dst.size());
  }
  size_t axes = src.size() - 2;
  Dims kernel = b->Integers("kernel", axes, 1);
  Dims strides = b->Integers("strides", axes, 1);
  Dims dilates = b->Integers("dilation", axes, 1);
  Dims padding_l = b->Integers("padding", axes, 0);
  Dims padding_r;
  for (size_t i = 0; i < axes; ++i) {
    int64_t reach = (kernel[i] - 1) * dilates[i] + 1;
    int64_t end = (dst[i + 2] - 1) * strides[i] + reach - src[i + 2] - padding_l[i];
    if (end >= reach || padding_l[i] >= reach) {
      ThrowUnsupported("a window of axis ", i + 2, " lies in the padding alone");
    }
    // The last window may also stop short of src's end.
    padding_r.push_back(std::max<int64_t>(end, 0));
    dilates[i] -= 1;
  }
  b->Add<dnnl::pooling_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                                dnnl::prop_kind::forward_inference,
                                PoolingAlgorithm(b->Text("algorithm")), b->Fixed("src"),
                                b->Desc("dst"), strides, kernel, dilates, padding_l, padding_r);
}

}  // namespace mxplan
