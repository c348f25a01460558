// Convolutions with few output channels, as plain functions on pointers.
//
//   products[tap][o][x] = weights[o][channels of the tap] . src[channels][x]      for a row of src
//   dst[o][place of x under the tap] += products[tap][o][x]
//
// Vectors hold pixels of a row.  Every tap is multiplied with the row once, and its products are
// added where they belong, in rows of dst that stay in cache (A. Anderson et al., "Low-memory
// GEMM-based convolution algorithms for deep neural networks", 2017, kn2row-accumulating; for
// transposed convolutions the common way).  A transposed convolution with strides adds to every
// so many columns of dst; those of one remainder, a phase, stand side by side until the row is
// whole.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "onednn/post_ops/codes.h"

namespace mxplan::few_outputs {

using post_ops::Output;
using post_ops::PostOp;

constexpr size_t kAxes = 3;  // planes, rows, columns; images of fewer have one of the others
enum AxisIndex : size_t { kPlane, kRow, kColumn };

// The place in dst that number `at` of src is added to under a tap: at * scale + first + tap *
// step.
struct Axis {
  int64_t src = 1, dst = 1, window = 1;
  int64_t scale = 1, first = 0, step = 1;

  int64_t Place(int64_t at, int64_t tap) const { return at * scale + first + tap * step; }
};

// Strides in numbers.  Channel c stands at c / block * blocks + c % block; of a plain image one is
// a block, of one with channels last all are.
struct Places {
  int64_t image = 0, block = 1, blocks = 0;
  std::array<int64_t, kAxes> axes = {};

  int64_t Channel(int64_t c) const { return c / block * blocks + c % block; }
};

struct Range {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
};

struct Convolution {
  std::array<Axis, kAxes> axes;
  int64_t inputs = 0, outputs = 0;
  int64_t stored = 0;  // channels of dst with those that fill its one block, which become zeros
  Places src, dst;
  // Of the sums of a part: rows of a plane, and numbers of a row's channel's phase.
  int64_t part_rows = 0, pitch = 0;
  // Of each tap's output channels, in the order of the weights: places among the sums of a part,
  // from the row on that a row of src is added to under tap 0.
  const int64_t* sums = nullptr;

  const float* from = nullptr;
  const float* weights = nullptr;  // [inputs][columns][planes][rows][outputs]
  float* to = nullptr;

  int64_t taps() const { return axes[kPlane].window * axes[kRow].window * axes[kColumn].window; }
  int64_t phases() const { return axes[kColumn].scale; }
  int64_t row() const { return outputs * phases() * pitch; }
};

// Some of an image of dst.  `begin` of columns is a multiple of the phases.
struct Part {
  int64_t image = 0;
  std::array<Range, kAxes> axes;
};

// The numbers of src that are added to some places of dst.
Range SourceOf(const Axis& axis, const Range& places);

// Columns of src that are added to some of dst, and the places of their sums, counted in columns of
// a phase.
struct Columns {
  Range src, sums;
};

// There is room for whole tiles.
Columns ColumnsOf(const Axis& axis, const Range& places, int64_t tile);

struct Kernel {
  const char* name = "";
  int64_t lanes = 0, tile = 0;
  // Numbers of scratch beside the sums of a part that has so many columns of dst.
  int64_t (*scratch)(int64_t columns) = nullptr;
  // `sums` have room for a part and a vector.
  void (*run)(const Convolution& convolution, const Output& output, const Part& part, float* sums,
              float* scratch) = nullptr;
};

Kernel Avx512Kernel();
Kernel Avx2Kernel();

}  // namespace mxplan::few_outputs

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_KERNELS_H_
