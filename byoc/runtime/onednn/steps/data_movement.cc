// Steps that only move bytes: reorder, slice, pad; and those that convert numbers: quantization.
#include "base/error.h"
#include "onednn/builder/fill.h"
#include "onednn/conversion/conversion.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

// `begin` of a box of `inner`'s shape inside `outer`.
Dims ReadBegin(const StepBuilder& b, const Dims& outer, const Dims& inner) {
  Dims begin = b.Integers("begin", outer.size(), 0);
  for (size_t i = 0; i < outer.size(); ++i) {
    if (inner.size() != outer.size() || begin[i] + inner[i] > outer[i]) {
      ThrowInvalidInput("the box leaves the larger tensor on axis ", i);
    }
  }
  return begin;
}

void CheckNoPostOps(const StepBuilder& b) {
  if (!b.step().post_ops.empty()) ThrowUnsupported("post-ops");
}

}  // namespace

void BuildReorder(StepBuilder* b) {
  CheckNoPostOps(*b);
  dnnl::memory::desc src = b->Fixed("src");
  dnnl::memory::desc dst = b->FixedLike("dst", src);
  if (src.get_dims() != dst.get_dims()) ThrowInvalidInput("src and dst differ in shape");
  if (!conversion::Build(b, src, dst)) b->AddReorder(b->Id("src"), src, b->Id("dst"), dst);
}

void BuildQuantization(StepBuilder* b) {
  CheckNoPostOps(*b);
  dnnl::memory::desc src = b->Fixed("src");
  dnnl::memory::desc dst = b->FixedLike("dst", src);
  if (!conversion::Build(b, src, dst)) b->AddRequantization(src, dst, b->Integer("axis"));
}

void BuildSlice(StepBuilder* b) {
  CheckNoPostOps(*b);
  dnnl::memory::desc src = b->Fixed("src");
  dnnl::memory::desc dst = b->FixedLike("dst", src);
  Dims begin = ReadBegin(*b, src.get_dims(), dst.get_dims());
  b->AddReorder(b->Id("src"), src.submemory_desc(dst.get_dims(), begin), b->Id("dst"), dst);
}

void BuildPad(StepBuilder* b) {
  CheckNoPostOps(*b);
  dnnl::memory::desc src = b->Fixed("src");
  dnnl::memory::desc dst = b->FixedLike("dst", src);
  Dims begin = ReadBegin(*b, dst.get_dims(), src.get_dims());
  auto value = static_cast<float>(b->Real("value"));
  dnnl::memory::desc window = dst.submemory_desc(src.get_dims(), begin);
  MemoryArgument whole{DNNL_ARG_DST, Argument::Source::kValue, b->Id("dst"), dst};
  b->AddStage(MakeFill(whole, value), "fill");
  b->AddReorder(b->Id("src"), src, b->Id("dst"), window);
}

}  // namespace mxplan
