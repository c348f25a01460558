// Batch normalization with given statistics, in training, and its gradients; layer normalization,
// local response normalization.
#include "base/error.h"
#include "onednn/statistics/statistics.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

const dnnl::normalization_flags kAffine =
    dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

// oneDNN has variances.
void RefuseInverse(const StepBuilder& b) {
  if (b.Flag("inverse")) ThrowUnsupported("1 / deviation in the place of a variance");
}

}  // namespace

void BuildBatchNormalization(StepBuilder* b) {
  using Flags = dnnl::normalization_flags;
  Flags flags = Flags::use_global_stats | Flags::use_scale | Flags::use_shift;
  if (b->Flag("relu")) flags |= Flags::fuse_norm_relu;
  int64_t channels = b->Rank("src") >= 2 ? b->Get("src").dims[1] : 0;
  for (const char* role : {"mean", "variance", "scale", "shift"}) {
    if (b->Fixed(role).get_dims() != Dims{channels}) {
      ThrowInvalidInput(role, " is no vector of ", channels);
    }
  }
  b->Add<dnnl::batch_normalization_forward>({{DNNL_ARG_SRC, b->Id("src")},
                                             {DNNL_ARG_MEAN, b->Id("mean")},
                                             {DNNL_ARG_VARIANCE, b->Id("variance")},
                                             {DNNL_ARG_SCALE, b->Id("scale")},
                                             {DNNL_ARG_SHIFT, b->Id("shift")},
                                             {DNNL_ARG_DST, b->Id("dst")}},
                                            b->Fixed("src"), b->Desc("dst"),
                                            static_cast<float>(b->Real("epsilon")), flags);
}

void BuildBatchNormalizationTraining(StepBuilder* b) {
  RefuseInverse(*b);
  for (const char* role : {"scale", "shift", "batch_mean", "batch_variance"}) b->Fixed(role);
  const auto epsilon = static_cast<float>(b->Real("epsilon"));
  if (statistics::Build(b)) {
    b->Add<dnnl::batch_normalization_forward>(
        {{DNNL_ARG_SRC, b->Id("src")},
         {DNNL_ARG_MEAN, b->Id("batch_mean")},
         {DNNL_ARG_VARIANCE, b->Id("batch_variance")},
         {DNNL_ARG_SCALE, b->Id("scale")},
         {DNNL_ARG_SHIFT, b->Id("shift")},
         {DNNL_ARG_DST, b->Id("dst")}},
        b->Fixed("src"), b->Desc("dst"), epsilon,
        dnnl::normalization_flags::use_global_stats | kAffine);
    if (b->KeepsWhole()) return;
  }
  b->AddForTraining<dnnl::batch_normalization_forward>(
      {{DNNL_ARG_SRC, b->Id("src")},
       {DNNL_ARG_SCALE, b->Id("scale")},
       {DNNL_ARG_SHIFT, b->Id("shift")},
       {DNNL_ARG_DST, b->Id("dst")},
       {DNNL_ARG_MEAN, b->Id("batch_mean")},
       {DNNL_ARG_VARIANCE, b->Id("batch_variance")}},
      b->Fixed("src"), b->Desc("dst"), epsilon, kAffine);
}

void BuildBatchNormalizationBackward(StepBuilder* b) {
  RefuseInverse(*b);
  for (const char* role : {"mean", "variance", "scale", "scale_gradient", "shift_gradient"}) {
    b->Fixed(role);
  }
  dnnl::memory::desc src = b->Fixed("src"), gradient = b->Fixed("gradient"), dst = b->Desc("dst");
  const auto epsilon = static_cast<float>(b->Real("epsilon"));
  b->AddBackward<dnnl::batch_normalization_backward>(
      {{DNNL_ARG_SRC, b->Id("src")},
       {DNNL_ARG_DIFF_DST, b->Id("gradient")},
       {DNNL_ARG_MEAN, b->Id("mean")},
       {DNNL_ARG_VARIANCE, b->Id("variance")},
       {DNNL_ARG_SCALE, b->Id("scale")},
       {DNNL_ARG_DIFF_SRC, b->Id("dst")},
       {DNNL_ARG_DIFF_SCALE, b->Id("scale_gradient")},
       {DNNL_ARG_DIFF_SHIFT, b->Id("shift_gradient")}},
      StepBuilder::HintOf<dnnl::batch_normalization_forward>(src, src, epsilon, kAffine), dst,
      gradient, src, epsilon, kAffine);
}

void BuildLayerNormalization(StepBuilder* b) {
  using Flags = dnnl::normalization_flags;
  Flags flags = Flags::none;
  std::vector<StepBuilder::Binding> bindings = {{DNNL_ARG_SRC, b->Id("src")},
                                                {DNNL_ARG_DST, b->Id("dst")}};
  int64_t last = b->Get("src").dims.back();
  auto vector = [&](const char* role, Flags flag, int id) {
    if (!b->Has(role)) return;
    if (b->Fixed(role).get_dims() != Dims{last}) ThrowInvalidInput(role, " is no vector of ", last);
    flags |= flag;
    bindings.push_back({id, b->Id(role)});
  };
  vector("scale", Flags::use_scale, DNNL_ARG_SCALE);
  vector("shift", Flags::use_shift, DNNL_ARG_SHIFT);
  b->Add<dnnl::layer_normalization_forward>(bindings, b->Fixed("src"), b->Desc("dst"),
                                            static_cast<float>(b->Real("epsilon")), flags);
}

// Statistics are worked out again: rows are short, and stay in the caches between the two.
void BuildLayerNormalizationBackward(StepBuilder* b) {
  for (const char* role : {"scale", "scale_gradient", "shift_gradient"}) b->Fixed(role);
  const dnnl::memory::desc src = b->Fixed("src"), gradient = b->Fixed("gradient");
  const dnnl::memory::desc dst = b->Desc("dst");
  const auto epsilon = static_cast<float>(b->Real("epsilon"));
  const StepBuilder::Binding mean = {DNNL_ARG_MEAN, StepBuilder::kOfTheStep};
  const StepBuilder::Binding variance = {DNNL_ARG_VARIANCE, StepBuilder::kOfTheStep};
  b->AddForTraining<dnnl::layer_normalization_forward>(
      {{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, StepBuilder::kOfTheStep}, mean, variance}, src,
      src, epsilon, dnnl::normalization_flags::none);
  b->AddBackward<dnnl::layer_normalization_backward>(
      {{DNNL_ARG_SRC, b->Id("src")},
       {DNNL_ARG_DIFF_DST, b->Id("gradient")},
       mean,
       variance,
       {DNNL_ARG_SCALE, b->Id("scale")},
       {DNNL_ARG_SHIFT, b->Id("scale")},  // oneDNN 3.2 asks for one, and does not read it
       {DNNL_ARG_DIFF_SRC, b->Id("dst")},
       {DNNL_ARG_DIFF_SCALE, b->Id("scale_gradient")},
       {DNNL_ARG_DIFF_SHIFT, b->Id("shift_gradient")}},
      StepBuilder::HintOf<dnnl::layer_normalization_forward>(src, src, epsilon, kAffine), dst,
      gradient, src, epsilon, kAffine);
}

void BuildLrn(StepBuilder* b) {
  int64_t size = b->Integer("size");
  if (size < 1 || size > INT32_MAX) ThrowInvalidInput("attribute size is ", size);
  b->Add<dnnl::lrn_forward>({{DNNL_ARG_SRC, b->Id("src")}, {DNNL_ARG_DST, b->Id("dst")}},
                            dnnl::algorithm::lrn_across_channels, b->Fixed("src"), b->Desc("dst"),
                            size, static_cast<float>(b->Real("alpha")),
                            static_cast<float>(b->Real("beta")), static_cast<float>(b->Real("k")));
}

}  // namespace mxplan
