// Convolutions in narrow groups on images with channels last, as plain functions on pointers.
//
// A vector holds output channels: some of one group, or all of several groups side by side.
//
//   dst[pixel][lanes] += weights[y][x][c][lanes] * src[pixel at y, x][c of the lane's group]
//
// For a vector of one group, the second factor is one number for all lanes, which is read in its
// place.  For a vector of several, src is spread out beforehand: for each pixel and each channel
// of a group, a vector with that channel of every lane's group.  Columns of dst are taken in strips
// whose rows of src stay in the nearest caches; rows come in once and are used for every row of
// dst that needs them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_GROUPED_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_GROUPED_KERNELS_H_

#include <cstdint>

#include "onednn/post_ops/codes.h"

namespace mxplan::grouped {

constexpr int64_t kMostFilter = 16;    // rows and columns of a filter
constexpr int64_t kMostColumns = 128;  // of a part

using post_ops::Output;
using post_ops::PostOp;

// Of both images, channels last: extents, and strides in elements.
struct Image {
  int64_t height = 0, width = 0;
  int64_t row = 0, column = 0;
};

struct Axis {
  int64_t filter = 1, stride = 1, dilation = 1, padding = 0;
};

struct Geometry {
  Image src, dst;
  Axis y, x;
  int64_t inputs = 0, outputs = 0;  // channels of a group
  bool spread = false;              // a vector has several groups, whose channels fill it
};

// The part of dst that a call computes: rows [top, bottom) and columns [left, right) of one group,
// or of the groups in a vector.
struct Part {
  const float* src = nullptr;      // channels from the part's first one on, at the first pixel
  const float* weights = nullptr;  // [vectors][y][x][inputs][lanes]
  float* dst = nullptr;
  int64_t offset = 0;        // of `dst` from the first element of all
  int64_t first_output = 0;  // among all channels of dst
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

struct Kernels {
  const char* name = "";
  int64_t lanes = 0;
  // Scratch floats of a call with that many columns.
  int64_t (*scratch)(const Geometry& geometry, int64_t columns) = nullptr;
  void (*run)(const Geometry& geometry, const Part& part, const Output& output,
              float* scratch) = nullptr;
};

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

}  // namespace mxplan::grouped

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_GROUPED_KERNELS_H_
