// Channel shuffle: the axis seen as [groups, size / groups] is transposed.
#include "builders.h"
#include "engine.h"
#include "error.h"

namespace mxplan {

void BuildShuffle(StepBuilder* b) {
  const Dims& dims = b->Get("src").dims;
  int64_t axis = b->Integer("axis");
  int64_t groups = b->Integer("groups");
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) {
    ThrowInvalidInput("axis ", axis, " of a tensor of rank ", dims.size());
  }
  if (groups < 1 || dims[axis] % groups != 0) {
    ThrowInvalidInput(dims[axis], " channels in ", groups, " groups");
  }
  dnnl::shuffle_forward::primitive_desc pd(CpuEngine(), dnnl::prop_kind::forward_inference,
                                           b->Fixed("src"), b->Desc("dst"), static_cast<int>(axis),
                                           static_cast<int>(dims[axis] / groups), b->Attr());
  b->Add<dnnl::shuffle_forward>(pd, {{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}});
}

}  // namespace mxplan
