// Convolutions with few output channels, as plain functions on pointers.
//
//   dst[o][places of a row of src under tap] +=
//       weights[o][channels and columns of the tap] . src[channels][columns that reach there]
//
// Vectors hold pixels of a row.  A row of src is multiplied once for every row of dst that it
// reaches, and added to it: rows of dst stay in cache.  A transposed convolution with strides is as
// many convolutions of different columns of the window, which give every so many columns of dst:
// those of one remainder, a phase, stand side by side until the row is whole.
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

// A column of the window: where its weights begin, and its place in the columns that a tile reads.
struct Tap {
  int64_t weights = 0, column = 0;
};

struct Convolution {
  std::array<Axis, kAxes> axes;
  int64_t inputs = 0, outputs = 0;
  int64_t stored = 0;  // channels of dst with those that fill its one block, which become zeros
  Places src, dst;

  // Columns of a phase that are computed at once, the columns of src that they read in front of
  // themselves, and how many they read in all.
  int64_t tile = 0, before = 0, read = 0;
  int64_t together = 0;           // rows of products
  const Tap* taps = nullptr;      // phase after phase
  const int64_t* ends = nullptr;  // of each phase's

  // Of the sums of a part: rows of a plane, and numbers of a row's channel's phase.
  int64_t part_rows = 0, pitch = 0;
  // Of output channels under planes and rows of the window: places among the sums of a part, from
  // the row on that a row of src is added to under the first of both.
  const int64_t* sums = nullptr;

  const float* from = nullptr;
  const float* weights = nullptr;  // [columns][inputs][planes][rows][outputs]
  float* to = nullptr;

  int64_t phases() const { return axes[kColumn].scale; }
  int64_t row() const { return outputs * phases() * pitch; }
  // Products of a row of src with one column of the window.
  int64_t products() const { return axes[kPlane].window * axes[kRow].window * outputs; }
};

// Some of an image of dst.  `begin` of columns is a multiple of the phases.
struct Part {
  int64_t image = 0;
  std::array<Range, kAxes> axes;
};

// The numbers of src that are added to some places of dst.
Range SourceOf(const Axis& axis, const Range& places);

struct Kernel {
  const char* name = "";
  int64_t lanes = 0;
  // Sets `tile` and `together` by the window and the outputs.
  void (*set_tile)(Convolution* convolution) = nullptr;
  // Numbers of scratch for a part that has so many columns of dst.
  int64_t (*scratch)(const Convolution& convolution, int64_t columns) = nullptr;
  // `sums` have room for a part and a vector.
  void (*run)(const Convolution& convolution, const Output& output, const Part& part, float* sums,
              float* scratch) = nullptr;
};

Kernel Avx512Kernel();
Kernel Avx2Kernel();

}  // namespace mxplan::few_outputs

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_KERNELS_H_
