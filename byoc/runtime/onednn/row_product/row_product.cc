// The executable of an inner product of one sample; see row_product.h.
#include "onednn/row_product/row_product.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/row_product/kernels.h"

namespace mxplan {
namespace {

// Less than that is read before another thread would have been woken.
constexpr int64_t kBytesOfThread = 64 << 10;

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kRest };

class RowProductStage final : public MemoryStage {
 public:
  RowProductStage(RowProduct product, bool bias, std::vector<post_ops::PostOp> post_ops,
                  int64_t columns, int threads, RowProductKernel kernel,
                  const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        product_(product),
        bias_(bias),
        post_ops_(std::move(post_ops)),
        columns_(columns),
        threads_(threads),
        kernel_(kernel) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    RowProduct product = product_;
    const void* src = Data<void>(memories[kSrc]);
    void* dst = Data<void>(memories[kDst]);
    product.filters = Data<void>(memories[kWeights]);
    size_t at = kRest;
    if (bias_) product.bias = Data(memories[at++]);
    const post_ops::FilledIn operators(post_ops_, [&] { return Data(memories[at++]); });
    product.post_ops = operators.data();
    product.post_op_count = operators.count();
    if (threads_ == 1) {  // a team of one would cost as much as a small product
      kernel_(product, src, 0, columns_, dst);
      return;
    }
#pragma omp parallel num_threads(threads_)
    {
      int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      kernel_(product, src, Bound(thread, threads), Bound(thread + 1, threads), dst);
    }
  }

 private:
  // The first row of a thread's share: whole groups of rows, so that every row is summed the same
  // way by any number of threads.
  int64_t Bound(int64_t thread, int64_t threads) const {
    int64_t groups = (columns_ + kRowsAtOnce - 1) / kRowsAtOnce;
    return std::min(columns_, groups * thread / threads * kRowsAtOnce);
  }

  RowProduct product_;
  bool bias_;
  std::vector<post_ops::PostOp> post_ops_;  // `data` is not null where an operand is filled in
  int64_t columns_;
  int threads_;
  RowProductKernel kernel_;
};

RowProductKernel SelectKernel() {
  return ForThisIsa(RowProductAvx512, RowProductAvx2, RowProductBase);
}

}  // namespace

bool TakesRowProduct(const StepBuilder& b) {
  for (const Operand& operand : b.step().operands) {
    const bool any_real =
        operand.role == "src" || operand.role == "weights" || operand.role == "dst";
    const std::optional<Number> number = NumberOf(b.Desc(operand.value));
    if (number != Number::kFloat && !(any_real && number == Number::kShort)) return false;
  }
  const Dims& filter = b.Get("weights").dims;
  bool empty = std::find(filter.begin(), filter.end(), 0) != filter.end();
  // Tails would have to be zeroed.
  const ResolvedValue& dst = b.Get("dst");
  bool plain = dst.IsAny() || b.Desc("dst").get_padded_dims() == dst.dims;
  return b.Get("src").dims[0] == 1 && !empty && plain && post_ops::HasFloatPostOps(b);
}

void BuildRowProduct(StepBuilder* b, const dnnl::memory::desc& rows, int64_t columns) {
  RowProduct product;
  product.depth = 1;
  for (int64_t extent : rows.get_dims()) product.depth *= extent;
  product.depth /= columns;
  product.filter = RealOf(rows, "weights");
  product.src = RealOf(b->Desc("src"), "src");
  product.dst = RealOf(b->Desc("dst"), "dst");
  auto value = [&](const char* role) {
    return MemoryArgument{0, Argument::Source::kValue, b->Id(role), b->Desc(role)};
  };
  std::vector<MemoryArgument> arguments = {value("src"), value("dst"),
                                           b->Packed(0, b->Id("weights"), rows)};
  post_ops::BindBiasAndPostOps(b, &arguments);
  auto bytes = static_cast<int64_t>(rows.get_size());
  auto threads = std::min<int64_t>(omp_get_max_threads(), bytes / kBytesOfThread + 1);
  b->NeedWeights(bytes);
  b->AddStage(
      std::make_unique<RowProductStage>(product, b->Has("bias"), post_ops::PostOpsOf(*b), columns,
                                        static_cast<int>(threads), SelectKernel(), arguments),
      kRowProduct);
}

}  // namespace mxplan
