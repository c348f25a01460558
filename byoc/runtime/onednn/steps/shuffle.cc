// Channel shuffle: the axis seen as [groups, size / groups] is transposed.
//
// oneDNN 3.2 has fast code for blocked layouts only.  Where no axis is blocked the shuffle is a
// reorder between two views that split the axis:
//
//   src  (..., group, channel, ...) with strides (size / groups * s, s)
//   dst  (..., group, channel, ...) with strides (s, groups * s)
#include "base/error.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

// `desc` with `axis` split into [outer, inner], which stand `outer_step` and `inner_step` elements
// of that axis apart.
dnnl::memory::desc Split(const dnnl::memory::desc& desc, int64_t axis, int64_t outer,
                         int64_t outer_step, int64_t inner_step) {
  Dims dims = desc.get_dims();
  Dims strides = desc.get_strides();
  int64_t step = strides[axis];
  dims[axis] /= outer;
  strides[axis] = inner_step * step;
  dims.insert(dims.begin() + axis, outer);
  strides.insert(strides.begin() + axis, outer_step * step);
  return dnnl::memory::desc(dims, desc.get_data_type(), strides);
}

}  // namespace

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
  int64_t size = dims[axis] / groups;
  dnnl::memory::desc src = b->Fixed("src");
  if (src.get_inner_nblks() == 0 && b->step().post_ops.empty()) {
    dnnl::memory::desc dst = b->FixedLike("dst", src);
    if (dst == src) {
      b->AddReorder(b->Id("src"), Split(src, axis, groups, size, 1), b->Id("dst"),
                    Split(dst, axis, groups, 1, groups));
      return;
    }
  }
  b->Add<dnnl::shuffle_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}}, src,
                                b->Desc("dst"), static_cast<int>(axis), static_cast<int>(size));
}

}  // namespace mxplan
