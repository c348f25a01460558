// Stages of kernels of our own behind whose sums stand a bias and post-ops.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_OUTPUT_STAGE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_OUTPUT_STAGE_H_

#include <omp.h>

#include <utility>
#include <vector>

#include "onednn/builder/memory_stage.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::post_ops {

class OutputStage : public MemoryStage {
 protected:
  using Memories = std::vector<dnnl_exec_arg_t>;

  // `first`: the place among the arguments of the bias, or of the first operand where there is
  // none, as BindBiasAndPostOps appends them.
  OutputStage(size_t first, bool bias, std::vector<PostOp> post_ops, int threads,
              const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        first_(first),
        bias_(bias),
        post_ops_(std::move(post_ops)),
        threads_(threads) {}

  // work(output of this call, thread, threads) of each thread.
  template <typename Work>
  void Share(const Memories& memories, const Work& work) const {
    Output output;
    size_t at = first_;
    if (bias_) output.bias = Data(memories[at++]);
    const FilledIn operators(post_ops_, [&] { return Data(memories[at++]); });
    output.post_ops = operators.data();
    output.post_op_count = operators.count();
    if (threads_ == 1) return work(output, 0, 1);
#pragma omp parallel num_threads(threads_)
    work(output, omp_get_thread_num(), omp_get_num_threads());
  }

 private:
  size_t first_;
  bool bias_;
  std::vector<PostOp> post_ops_;  // `data` is not null where an operand has to be filled in
  int threads_;
};

}  // namespace mxplan::post_ops

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_OUTPUT_STAGE_H_
