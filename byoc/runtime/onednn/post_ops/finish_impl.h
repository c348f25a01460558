// Results of products in kernels of our own: a vector of columns behind post-ops; included once for
// each instruction set.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_FINISH_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_FINISH_IMPL_H_

#include "onednn/post_ops/apply_impl.h"

namespace mxplan {
namespace {

MXPLAN_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// One vector of a row into p.dst [rows, p.columns], or the columns of it that there are; operands
// of post-ops have a number for each column, or stand as dst does.
template <typename Product>
MXPLAN_INLINE void Finish(const Product& p, int64_t row, int64_t column, Vec x) {
  const int64_t some = Least(kLanes, p.columns - column);
  if (some <= 0) return;
  const int64_t at = row * p.columns + column;
  for (int64_t i = 0; i < p.post_op_count; ++i) {
    const post_ops::PostOp& op = p.post_ops[i];
    const float* from = nullptr;
    if (op.code == post_ops::PostOp::Code::kSum) {
      from = p.dst + at;
    } else if (op.data) {
      from = op.data + (op.per_channel ? column : at);
    }
    Vec other = {};
    if (from) other = some == kLanes ? Load(from) : LoadSome(from, some);
    x = Apply(op, x, other);
  }
  if (some == kLanes) {
    Store(p.dst + at, x);
  } else {
    StoreSome(p.dst + at, x, some);
  }
}

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_FINISH_IMPL_H_
