// Matrix products: matmul with batch dimensions, and inner product on whole samples.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "onednn/integers/integers.h"
#include "onednn/packed_product/packed_product.h"
#include "onednn/row_product/row_product.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

template <typename Primitive>
void Build(StepBuilder* b) {
  std::vector<StepBuilder::Binding> bindings = {{DNNL_ARG_SRC, b->Id("src")},
                                                {DNNL_ARG_WEIGHTS, b->Id("weights")},
                                                {DNNL_ARG_DST, b->Id("dst")}};
  dnnl::memory::desc bias;
  if (b->Has("bias")) {
    bias = b->Fixed("bias");
    bindings.push_back({DNNL_ARG_BIAS, b->Id("bias")});
  }
  constexpr bool kIsMatMul = std::is_same_v<Primitive, dnnl::matmul>;
  b->ScaleWeightsAlong(kIsMatMul ? 1 << (b->Rank("weights") - 1) : 1);
  b->Add<Primitive>(bindings, b->Desc("src"), b->Weights("weights"), bias, b->Desc("dst"));
}

// An inner product as the matrix product of samples as rows, which oneDNN 3.2 runs faster.  Rows
// hold a sample in whatever order it is stored, and constant weights are packed in that order too.
void BuildRows(StepBuilder* b) {
  dnnl::memory::desc src = b->Fixed("src");
  dnnl::memory::desc weights = b->Desc("weights");
  dnnl::memory::desc dst = b->Fixed("dst");
  Dims sample = src.get_dims();
  Dims filter = weights.get_dims();
  if (dst.get_dims() != Dims{sample[0], filter[0]} ||
      !std::equal(sample.begin() + 1, sample.end(), filter.begin() + 1, filter.end())) {
    ThrowInvalidInput("an inner product of other shapes than [N, ...], [O, ...] and [N, O]");
  }
  std::string order = TagOf(src);
  if (order[0] != 'a' || src.get_padded_dims() != sample) {
    ThrowUnsupported("samples in layout ", order, " are no rows");
  }
  if (TakesRowProduct(*b) && !b->Refuses(kRowProduct)) {
    return BuildRowProduct(b, MakeDesc(filter, weights.get_data_type(), order), filter[0]);
  }
  if (integers::TakesRows(b)) {
    return integers::BuildRows(b, MakeDesc(filter, weights.get_data_type(), order));
  }
  if (TagOf(dst) == "ab" && packed_product::Takes(b)) {
    return packed_product::Build(b, MakeDesc(filter, weights.get_data_type(), order), filter[0]);
  }
  int64_t rows = sample[0], columns = filter[0], depth = 1;
  for (size_t i = 1; i < sample.size(); ++i) depth *= sample[i];
  dnnl::memory::data_type type = weights.get_data_type();
  dnnl::memory::desc seen_src = MakeDesc({rows, depth}, src.get_data_type(), "ab");
  dnnl::memory::desc seen_weights = MakeDesc({depth, columns}, type, "ba");
  std::vector<StepBuilder::Binding> bindings = {
      {DNNL_ARG_SRC, b->Id("src"), seen_src},
      {DNNL_ARG_WEIGHTS, b->Id("weights"), seen_weights, MakeDesc(filter, type, order)},
      {DNNL_ARG_DST, b->Id("dst")}};
  dnnl::memory::desc bias;
  if (b->Has("bias")) {
    bias = MakeDesc({1, columns}, b->Desc("bias").get_data_type(), "ab");
    bindings.push_back({DNNL_ARG_BIAS, b->Id("bias"), bias});
  }
  b->ScaleWeightsAlong(2);
  b->Add<dnnl::matmul>(bindings, seen_src, MakeDesc({depth, columns}, type, "any"), bias, dst);
}

// True for rows times a constant matrix, [rows, depth] x [depth, columns], whose bias, if there is
// one, has a number for each column.
bool IsRowsTimesMatrix(const StepBuilder& b) {
  if (!b.IsConstant("weights") || b.Rank("src") != 2 || b.Rank("weights") != 2) return false;
  const Dims& src = b.Get("src").dims;
  const Dims& weights = b.Get("weights").dims;
  if (src[1] != weights[0] || b.Get("dst").dims != Dims{src[0], weights[1]}) return false;
  return !b.Has("bias") || b.Get("bias").dims == Dims{1, weights[1]};
}

// Makes both ends plain where they may be anything; false if one is something else.
bool HasPlainEnds(StepBuilder* b) {
  return TagOf(b->Fixed("src")) == "ab" && TagOf(b->Fixed("dst")) == "ab";
}

}  // namespace

void BuildMatMul(StepBuilder* b) {
  if (IsRowsTimesMatrix(*b)) {
    const dnnl::memory::desc weights = b->Desc("weights");
    const int64_t columns = weights.get_dims()[1];
    const dnnl::memory::desc filters = MakeDesc(weights.get_dims(), weights.get_data_type(), "ba");
    if (TakesRowProduct(*b) && HasPlainEnds(b) && !b->Refuses(kRowProduct)) {
      return BuildRowProduct(b, filters, columns);
    }
    if (b->Has("weights_scale") && HasPlainEnds(b) && integers::TakesRows(b)) {
      return integers::BuildRows(b, filters);
    }
    if (packed_product::Takes(b) && HasPlainEnds(b)) {
      return packed_product::Build(b, filters, columns);
    }
  }
  Build<dnnl::matmul>(b);
}

void BuildInnerProduct(StepBuilder* b) {
  if (b->IsConstant("weights")) return BuildRows(b);
  Build<dnnl::inner_product_forward>(b);
}

}  // namespace mxplan
