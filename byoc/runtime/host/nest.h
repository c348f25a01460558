// Loops over all elements of a result and of what it is made of, as few and as long as strides
// allow: axes that stand one behind the other in every operand become one.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_NEST_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_NEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/parallel.h"
#include "program/physical_layout.h"

namespace mxplan::host {

// One axis of a nest, with each operand's elements from one index to the next.
template <size_t kOperands>
struct Loop {
  int64_t extent = 1;
  std::array<int64_t, kOperands> strides{};
};

// The loops, outermost first; there is at least one.
template <size_t kOperands>
using Nest = std::vector<Loop<kOperands>>;

// Sorts loops so that operand 0, which is written, is walked through in the order in which it
// stands, and joins them.
template <size_t kOperands>
Nest<kOperands> Joined(Nest<kOperands> loops) {
  Nest<kOperands> kept;
  for (const Loop<kOperands>& loop : loops) {
    if (loop.extent == 0) return {loop};
    if (loop.extent != 1) kept.push_back(loop);
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const auto& a, const auto& b) { return a.strides[0] > b.strides[0]; });
  Nest<kOperands> joined;
  for (const Loop<kOperands>& inner : kept) {
    bool follows = !joined.empty();
    for (size_t i = 0; follows && i < kOperands; ++i) {
      follows = joined.back().strides[i] == inner.strides[i] * inner.extent;
    }
    if (follows) {
      joined.back().extent *= inner.extent;
      joined.back().strides = inner.strides;
    } else {
      joined.push_back(inner);
    }
  }
  if (joined.empty()) joined.push_back({});
  return joined;
}

template <size_t kOperands>
int64_t Elements(const Nest<kOperands>& nest) {
  int64_t elements = 1;
  for (const Loop<kOperands>& loop : nest) elements *= loop.extent;
  return elements;
}

// Calls `piece(offsets, count)` for each piece of an innermost loop in elements [begin, end): where
// the first element of each operand is, in elements.
template <size_t kOperands, typename Piece>
void ForPieces(const Nest<kOperands>& nest, int64_t begin, int64_t end, const Piece& piece) {
  const size_t inner = nest.size() - 1;
  std::vector<int64_t> index(nest.size());
  std::array<int64_t, kOperands> offsets{};
  int64_t rest = begin;
  for (size_t i = nest.size(); i-- > 0;) {
    index[i] = rest % nest[i].extent;
    rest /= nest[i].extent;
    for (size_t k = 0; k < kOperands; ++k) offsets[k] += index[i] * nest[i].strides[k];
  }
  int64_t left = end - begin;
  while (true) {
    const int64_t count = std::min(left, nest[inner].extent - index[inner]);
    piece(offsets, count);
    left -= count;
    if (left == 0) return;
    for (size_t k = 0; k < kOperands; ++k) offsets[k] -= index[inner] * nest[inner].strides[k];
    index[inner] = 0;
    for (size_t i = inner; i-- > 0;) {
      for (size_t k = 0; k < kOperands; ++k) offsets[k] += nest[i].strides[k];
      if (++index[i] < nest[i].extent) break;
      for (size_t k = 0; k < kOperands; ++k) offsets[k] -= nest[i].extent * nest[i].strides[k];
      index[i] = 0;
    }
  }
}

// The same for all elements, on all threads.
template <size_t kOperands, typename Piece>
void ForAllPieces(const Nest<kOperands>& nest, double element_ns, const Piece& piece) {
  ParallelFor(Elements(nest), element_ns,
              [&](int64_t begin, int64_t end) { ForPieces(nest, begin, end, piece); });
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_NEST_H_
