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

// Of a value; layouts have no more axes than this.
constexpr size_t kMostLoops = 12;
// From so many rows for each thread on, threads get whole ones.
constexpr int64_t kRowsToShare = 4;

// The loops, outermost first; there is at least one, and no more than `kMostLoops`.
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

// Calls `piece(offsets, rows, count)` for rows [begin, end) of a nest, which are its innermost
// loops: as many rows at once as the loop around them has, and where the first element of each
// operand is, in elements.
template <size_t kOperands, typename Piece>
void ForRows(const Nest<kOperands>& nest, int64_t begin, int64_t end, const Piece& piece) {
  const int64_t count = nest.back().extent;
  std::array<int64_t, kOperands> offsets{};
  if (nest.size() == 1) return piece(offsets, int64_t{1}, count);
  const size_t inner = nest.size() - 2;
  std::array<int64_t, kMostLoops> index{};
  int64_t rest = begin;
  for (size_t i = inner + 1; i-- > 0;) {
    index[i] = rest % nest[i].extent;
    rest /= nest[i].extent;
    for (size_t k = 0; k < kOperands; ++k) offsets[k] += index[i] * nest[i].strides[k];
  }
  int64_t left = end - begin;
  while (true) {
    const int64_t rows = std::min(left, nest[inner].extent - index[inner]);
    piece(offsets, rows, count);
    left -= rows;
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

// Calls `of(offsets)` for element `at` of a nest.
template <size_t kOperands, typename Of>
void ForEach(const Nest<kOperands>& nest, int64_t at, const Of& of) {
  std::array<int64_t, kOperands> offsets{};
  for (size_t i = nest.size(); i-- > 0;) {
    for (size_t k = 0; k < kOperands; ++k) offsets[k] += at % nest[i].extent * nest[i].strides[k];
    at /= nest[i].extent;
  }
  of(offsets);
}

// From one row of a piece to the next, in elements of each operand.
template <size_t kOperands>
std::array<int64_t, kOperands> RowStrides(const Nest<kOperands>& nest) {
  return nest.size() == 1 ? std::array<int64_t, kOperands>{} : nest[nest.size() - 2].strides;
}

// The same for all elements, on all threads.  Threads share rows, or where these are few and long,
// the elements of each.
template <size_t kOperands, typename Piece>
void ForAllRows(const Nest<kOperands>& nest, double element_ns, const Piece& piece) {
  const int64_t count = nest.back().extent, elements = Elements(nest);
  const int64_t rows = count == 0 ? 0 : elements / count;
  if (rows >= kRowsToShare * omp_get_max_threads() ||
      static_cast<double>(elements) * element_ns < kSerialNs) {
    const double row_ns = element_ns * static_cast<double>(count);
    ParallelFor(rows, row_ns,
                [&](int64_t begin, int64_t end) { ForRows(nest, begin, end, piece); });
    return;
  }
  ParallelFor(count, element_ns * static_cast<double>(rows), [&](int64_t begin, int64_t end) {
    ForRows(nest, 0, rows, [&](auto offsets, int64_t some, int64_t) {
      for (size_t k = 0; k < kOperands; ++k) offsets[k] += begin * nest.back().strides[k];
      piece(offsets, some, end - begin);
    });
  });
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_NEST_H_
