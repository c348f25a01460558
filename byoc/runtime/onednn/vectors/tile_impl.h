// Sums of a tile of results that stay in registers over a part of the depth; included once for each
// instruction set, behind lanes_impl.h.  MXPLAN_DEPTH_AT_ONCE numbers of the depth, 1 if it is not
// defined, go without a jump between them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_TILE_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_TILE_IMPL_H_

#include <cstdint>

#include "onednn/vectors/lanes_impl.h"
#ifndef MXPLAN_DEPTH_AT_ONCE
#define MXPLAN_DEPTH_AT_ONCE 1
#endif

namespace mxplan {
namespace {

constexpr int kDepthAtOnce = MXPLAN_DEPTH_AT_ONCE;

// Numbers from one to the next.
struct TileSteps {
  int64_t src_row, src_number;             // along rows, and along the depth
  int64_t weights_number, weights_vector;  // along the depth, and along columns by vectors
  int64_t sums_row;                        // vectors of a row stand side by side
};

// sums [kRows, kWide vectors] += src . weights over `depth`, or the first of it.  Steps that are
// constants where it is called become constants of the code; it is to be called by a function that
// is not inlined, since what is done with the sums afterwards would take registers that they need.
template <int kRows, int kWide>
MXPLAN_INLINE void AddToTile(const float* src, const float* weights, const TileSteps& steps,
                             int64_t depth, bool first, float* sums) {
  Vec acc[kRows][kWide];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v) {
      acc[r][v] = first ? Vec{} : Load(sums + r * steps.sums_row + v * kLanes);
    }
  }
#pragma GCC unroll kDepthAtOnce
  for (int64_t k = 0; k < depth; ++k) {
    Vec numbers[kWide];
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v) {
      numbers[v] = Load(weights + k * steps.weights_number + v * steps.weights_vector);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec x = Broadcast(src[r * steps.src_row + k * steps.src_number]);
#pragma GCC unroll 4
      for (int v = 0; v < kWide; ++v) acc[r][v] += x * numbers[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v) Store(sums + r * steps.sums_row + v * kLanes, acc[r][v]);
  }
}

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_TILE_IMPL_H_
