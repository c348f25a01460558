// Matrix products: matmul with batch dimensions, and inner product on flattened samples.
#include "builders.h"

namespace mxplan {
namespace {

template <typename Primitive, typename... First>
void Build(StepBuilder* b, First... first) {
  std::vector<StepBuilder::Binding> bindings = {{DNNL_ARG_SRC, b->Id("src")},
                                                {DNNL_ARG_WEIGHTS, b->Id("weights")},
                                                {DNNL_ARG_DST, b->Id("dst")}};
  dnnl::memory::desc bias;
  if (b->Has("bias")) {
    bias = b->Fixed("bias");
    bindings.push_back({DNNL_ARG_BIAS, b->Id("bias")});
  }
  b->Add<Primitive>(bindings, first..., b->Desc("src"), b->Weights("weights"), bias,
                    b->Desc("dst"));
}

}  // namespace

void BuildMatMul(StepBuilder* b) { Build<dnnl::matmul>(b); }

void BuildInnerProduct(StepBuilder* b) {
  Build<dnnl::inner_product_forward>(b, dnnl::prop_kind::forward_inference);
}

}  // namespace mxplan
