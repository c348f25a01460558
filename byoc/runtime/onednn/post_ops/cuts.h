// Post-ops that do no more than to cut numbers at two ends.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_CUTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_CUTS_H_

#include <algorithm>
#include <limits>
#include <vector>

#include "onednn/post_ops/codes.h"
#include "program/program.h"

namespace mxplan::post_ops {

// One after another.
struct Cuts {
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();

  // False, and nothing added, for one that does something else.
  bool Add(const mxplan::PostOp& op) {
    if (op.kind != mxplan::PostOp::Kind::kEltwise) return false;
    const bool relu = op.algorithm == "relu" && op.alpha == 0;
    if (!relu && op.algorithm != "clip" && op.algorithm != "clip_v2") return false;
    const float low = relu ? 0 : static_cast<float>(op.alpha);
    const float high = relu ? std::numeric_limits<float>::infinity() : static_cast<float>(op.beta);
    least = std::min(std::max(least, low), high);
    most = std::min(std::max(most, low), high);
    return true;
  }
};

inline Cut CutOf(const std::vector<mxplan::PostOp>& post_ops) {
  Cuts cuts;
  const bool is_all = std::all_of(post_ops.begin(), post_ops.end(),
                                  [&](const mxplan::PostOp& op) { return cuts.Add(op); });
  return {is_all, cuts.least, cuts.most};
}

}  // namespace mxplan::post_ops

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_POST_OPS_CUTS_H_
