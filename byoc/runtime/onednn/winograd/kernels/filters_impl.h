// Transforms of filters, channels of vectors at once; one of the parts of kernels_impl.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_FILTERS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_FILTERS_IMPL_H_

#include "onednn/vectors/lanes_impl.h"
#include "onednn/winograd/kernels/kernels.h"
#include "onednn/winograd/kernels/variants_impl.h"

namespace mxplan::winograd {
namespace {

// kLanes rows of kLanes output channels at one element of the window; zeros where a channel is
// missing.
MXPLAN_INLINE void ReadFilters(const FilterPlaces& from, const float* filters, int64_t row,
                               int64_t column, Vec* to) {
  const int64_t rows = from.input_count - row, columns = from.output_count - column;
  const int64_t *inputs = from.inputs + row, *outputs = from.outputs + column;
  if (rows >= kLanes && columns >= kLanes) {
    bool beside = true, below = true;  // vectors of outputs, or of inputs
    for (int64_t i = 1; i < kLanes; ++i) {
      beside = beside && outputs[i] == outputs[0] + i;
      below = below && inputs[i] == inputs[0] + i;
    }
    if (beside) {
      for (int64_t i = 0; i < kLanes; ++i) to[i] = Load(filters + outputs[0] + inputs[i]);
      return;
    }
    if (below) {
      for (int64_t i = 0; i < kLanes; ++i) to[i] = Load(filters + outputs[i] + inputs[0]);
      return Transpose(to);
    }
  }
  for (int64_t i = 0; i < kLanes; ++i) {
    float lanes[kLanes] = {};
    for (int64_t j = 0; i < rows && j < kLanes && j < columns; ++j) {
      lanes[j] = filters[outputs[j] + inputs[i]];
    }
    to[i] = Load(lanes);
  }
}

template <typename F>
MXPLAN_INLINE void TransformRow(const Vec (*window)[kLanes], int64_t row, float* to,
                                int64_t element) {
  constexpr int kSize = F::kPatch - F::kTile + 1;
  Vec half[kSize][F::kPatch];  // a column of G g each
#pragma GCC unroll 5
  for (int x = 0; x < kSize; ++x) {
    Vec column[kSize];
#pragma GCC unroll 5
    for (int y = 0; y < kSize; ++y) column[y] = window[y * kSize + x][row];
    F::Filter(column, half[x]);
  }
#pragma GCC unroll 6
  for (int y = 0; y < F::kPatch; ++y) {
    Vec line[kSize], transformed[F::kPatch];
#pragma GCC unroll 5
    for (int x = 0; x < kSize; ++x) line[x] = half[x][y];
    F::Filter(line, transformed);
#pragma GCC unroll 6
    for (int x = 0; x < F::kPatch; ++x) {
      Store(to + (y * F::kPatch + x) * element, transformed[x]);
    }
  }
}

template <typename F>
void TransformFilters(const FilterPlaces& from, const float* filters, const MatrixPlaces& to,
                      float* matrices, int64_t row, int64_t column) {
  constexpr int kSize = F::kPatch - F::kTile + 1;
  for (int64_t r = row; r < row + kColumns; r += kLanes) {
    for (int64_t c = column; c < column + kColumns; c += kLanes) {
      Vec window[kSize * kSize][kLanes];
      for (int t = 0; t < kSize * kSize; ++t) {
        ReadFilters(from, filters + from.window[t], r, c, window[t]);
      }
      for (int64_t i = 0; i < kLanes; ++i) {
        TransformRow<F>(window, i, matrices + to.rows[r + i] + to.columns[c], to.element);
      }
    }
  }
}

}  // namespace
}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_FILTERS_IMPL_H_
