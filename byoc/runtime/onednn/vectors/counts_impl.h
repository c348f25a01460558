// Counts as constants; included behind lanes_impl.h, for kernels whose sums stay in registers.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_COUNTS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_COUNTS_IMPL_H_

#include <type_traits>

#include "onednn/vectors/lanes_impl.h"

namespace mxplan {
namespace {

// Calls run(count) with a count of 1 to kMost as a constant.
template <int kMost, typename Run>
MXPLAN_INLINE void WithConstant(int64_t count, const Run& run) {
  if constexpr (kMost > 1) {
    if (count < kMost) return WithConstant<kMost - 1>(count, run);
  }
  run(std::integral_constant<int, kMost>());
}

// Calls run(size, first) for parts of `count` of about the same size, at most kMost: what each part
// loads is loaded for as many.
template <int kMost, typename Run>
MXPLAN_INLINE void InParts(int64_t count, const Run& run) {
  int64_t first = 0;
  for (int64_t parts = (count + kMost - 1) / kMost; parts > 0; --parts) {
    const int64_t size = (count - first + parts - 1) / parts;
    WithConstant<kMost>(
        size, [&](auto constant) __attribute__((always_inline)) { run(constant, first); });
    first += size;
  }
}

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_COUNTS_IMPL_H_
