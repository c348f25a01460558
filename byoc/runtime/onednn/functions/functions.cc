// The stage of a function behind a primitive; see functions.h.
#include "onednn/functions/functions.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "onednn/functions/kernels.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::functions {
namespace {

using dnnl::memory;

// Fewer numbers are done before another thread would have been woken.
constexpr int64_t kNumbersOfThread = 1 << 12;

class FunctionStage final : public MemoryStage {
 public:
  FunctionStage(post_ops::PostOp function, int64_t count, const MemoryArgument& dst)
      : MemoryStage({dst}),
        function_(function),
        count_(count),
        parts_(std::min<int64_t>(omp_get_max_threads(), count / kNumbersOfThread + 1)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    auto* numbers = Data(memories[0]);
    auto run = [&](int64_t part) {
      const int64_t begin = count_ * part / parts_, end = count_ * (part + 1) / parts_;
      Avx2(function_, numbers + begin, end - begin);
    };
    if (parts_ == 1) return run(0);
#pragma omp parallel num_threads(static_cast<int>(parts_))
    {
      const int64_t threads = omp_get_num_threads();
      for (int64_t i = omp_get_thread_num(); i < parts_; i += threads) run(i);
    }
  }

 private:
  post_ops::PostOp function_;
  int64_t count_;
  int64_t parts_;
};

}  // namespace

bool TakesLast(const StepBuilder& b, const std::vector<PostOp>& post_ops) {
  if (post_ops.empty() || post_ops.back().kind != PostOp::Kind::kEltwise) return false;
  // Primitives that oneDNN refuses with a function, a shuffle for one, stay refused.
  if (!b.Has("weights") && b.step().kind != "binary") return false;
  const std::string& algorithm = post_ops.back().algorithm;
  if (algorithm != "tanh" && algorithm != "gelu_tanh") return false;
  if (!HasIsa(dnnl::cpu_isa::avx2) || HasIsa(dnnl::cpu_isa::avx512_core)) return false;
  return !b.Has("dst_scale") && NumberOf(b.Desc("dst")) == Number::kFloat;
}

void Add(StepBuilder* b, const PostOp& function) {
  const memory::desc dst = b->Desc("dst");
  // All that is stored, which has no gaps: both functions leave the zeros of padding.
  const auto count = static_cast<int64_t>(dst.get_size() / sizeof(float));
  b->AddStage(std::make_unique<FunctionStage>(
                  post_ops::FunctionOf(function.algorithm, function.alpha, function.beta), count,
                  MemoryArgument{0, Argument::Source::kValue, b->Id("dst"), dst}),
              kName);
}

}  // namespace mxplan::functions
