// Rows of float32 weights; included behind lanes_impl.h by a file that names an instruction set.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_ROWS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_ROWS_IMPL_H_

#include "onednn/recurrence/kernels.h"
#include "onednn/vectors/lanes_impl.h"

namespace mxplan::recurrence {
namespace {

MXPLAN_INLINE void Prepare(const Step&) {}

// Enough sums run beside each other that none waits for its last addition.
template <int kGates>
MXPLAN_INLINE void Recur(const Step& step, int64_t first, Vec* sums) {
  constexpr int64_t kRows = kGates == 1 ? 8 : 2;
  const int64_t units = step.units;
  const float* weights = static_cast<const float*>(step.recurrence) + first * units * kGates;
  Vec parts[kRows][kGates] = {};
  int64_t i = 0;
  for (; i + kRows <= units; i += kRows) {
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      Vec number = Broadcast(step.before[i + r]);
#pragma GCC unroll 4
      for (int64_t g = 0; g < kGates; ++g) {
        parts[r][g] += number * Load(weights + ((i + r) * kGates + g) * kLanes);
      }
    }
  }
  for (; i < units; ++i) {
    Vec number = Broadcast(step.before[i]);
    for (int64_t g = 0; g < kGates; ++g) {
      parts[0][g] += number * Load(weights + (i * kGates + g) * kLanes);
    }
  }
  for (int64_t count = kRows / 2; count > 0; count /= 2) {
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t g = 0; g < kGates; ++g) parts[r][g] += parts[r + count][g];
    }
  }
  for (int64_t g = 0; g < kGates; ++g) sums[g] = parts[0][g];
}

}  // namespace
}  // namespace mxplan::recurrence

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_ROWS_IMPL_H_
