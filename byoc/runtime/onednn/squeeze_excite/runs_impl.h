// Going over numbers side by side, in vectors and at the end in a part of one; included once for
// each instruction set, behind its lanes.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_RUNS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_RUNS_IMPL_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "onednn/squeeze_excite/kernels.h"
#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan::squeeze_excite {
namespace {

template <typename Type>
const Type* As(const void* pointer) {
  return static_cast<const Type*>(pointer);
}

// Calls work(place, vectors, some) along `count` numbers: `vectors`, a constant, of them at once.
template <typename Work>
MXPLAN_INLINE void ForVectors(int64_t count, const Work& work) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= count; at += 4 * kLanes) {
    work(at, std::integral_constant<int64_t, 4>(), Some<true>{kLanes});
  }
  for (; at + kLanes <= count; at += kLanes) {
    work(at, std::integral_constant<int64_t, 1>(), Some<true>{kLanes});
  }
  if (at < count) work(at, std::integral_constant<int64_t, 1>(), Some<false>{count - at});
}

// Calls work(place, channel, count) for each run of channels that stand side by side.
template <typename Work>
MXPLAN_INLINE void ForRuns(const Image& image, int64_t begin, int64_t end, const Work& work) {
  int64_t channel = begin;
  while (channel < end) {
    const int64_t group = channel / image.together, within = channel % image.together;
    const int64_t count = std::min(image.together - within, end - channel);
    work(group * image.group_stride + within, channel, count);
    channel += count;
  }
}

}  // namespace
}  // namespace mxplan::squeeze_excite

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_RUNS_IMPL_H_
