// A step's post-ops as the runtime's own kernels apply them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_POST_OPS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_POST_OPS_H_

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "onednn/builder/step_builder.h"
#include "onednn/post_ops/codes.h"

namespace mxplan::post_ops {

constexpr size_t kMaxPostOps = 32;

// A function of one number; throws Unsupported for one that kernels do not have.
PostOp FunctionOf(const std::string& algorithm, double alpha, double beta);

// In their order, kMaxPostOps at most; throws Unsupported for what kernels do not have.
// `data` is not null where an operand has to be filled in.  `axis` is that of dst's channels.  An
// operand that is as dst has dst's type, or with kAny any that is a Number.
enum class Types : uint8_t { kOfDst, kAny };
std::vector<PostOp> PostOpsOf(const StepBuilder& b, size_t axis = 1, Types types = Types::kOfDst);

// Post-ops with the operands of a call: next() gives the data of each that has one, in their order.
class FilledIn {
 public:
  template <typename Next>
  FilledIn(const std::vector<PostOp>& post_ops, const Next& next) : count_(post_ops.size()) {
    for (size_t i = 0; i < count_; ++i) {
      operators_.at(i) = post_ops[i];
      if (post_ops[i].data) operators_.at(i).data = next();
    }
  }
  const PostOp* data() const { return operators_.data(); }
  int count() const { return static_cast<int>(count_); }

 private:
  std::array<PostOp, kMaxPostOps> operators_;
  size_t count_;
};

// True if PostOpsOf takes all that the step has.
bool HasPostOps(const StepBuilder& b, Types types = Types::kOfDst);
// The same, with operands in float32.
bool HasFloatPostOps(const StepBuilder& b);
// The same of a step whose dst is real and whose bias is float32: operands along channels are
// float32, others have dst's type.
bool HasRealResult(StepBuilder* b);

// Appends what the binary post-ops read, in the order in which FilledIn asks for it.
void BindPostOps(const StepBuilder& b, std::vector<MemoryArgument>* arguments);
// The same behind the bias, if the step has one.
void BindBiasAndPostOps(StepBuilder* b, std::vector<MemoryArgument>* arguments);

}  // namespace mxplan::post_ops

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_POST_OPS_H_
