// Dense products in bfloat16 by tiles, as plain functions on pointers.
//
//   dst[pixel][c] = post_ops(bias[c] + sum of weights[c][...] * src[what the pixel is made of])
//
// Sums are in float32.  Those of a group of pixels and of two blocks of channels go through memory
// on their way to results.  A group's rows stay in the nearest cache from block to block, while
// weights come from the next one.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_TILES_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_TILES_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"
#include "onednn/post_ops/codes.h"
#include "onednn/windows/pixel_geometry.h"

namespace mxplan::tiles {

using post_ops::Output;
using post_ops::PostOp;

constexpr int64_t kBlock = 16;      // channels whose weights stand together
constexpr int64_t kStepBytes = 64;  // of src, up to which weights are filled up

struct Product {
  PixelGeometry geometry;
  const uint8_t* src = nullptr;
  const uint8_t* weights = nullptr;  // [blocks][steps][pairs of a step][kBlock][two]
  int64_t weights_block = 0;         // bytes
  int64_t channels = 0;
  void* dst = nullptr;
  Real number = kRealShort;    // of dst, and of what post-ops read as it stands there
  uint8_t* scratch = nullptr;  // of this thread, for copies
  post_ops::Cut cut;
};

// PixelGeometry of dst, and channels from a block's first one on.
struct Part {
  int64_t begin = 0, end = 0;
  int64_t channel = 0, end_channel = 0;
};

struct Kernel {
  const char* instructions = "";
  int64_t (*scratch)(const Product& product) = nullptr;  // bytes
  void (*run)(const Product& product, const Output& output, const Part& part) = nullptr;
};

Kernel AmxKernel();

}  // namespace mxplan::tiles

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_TILES_KERNELS_H_
