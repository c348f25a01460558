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

constexpr int64_t kBlock = 16;  // channels whose weights stand together

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

struct Kernel {
  const char* instructions = "";
  int64_t (*scratch)(const Product& product) = nullptr;  // bytes
  // Channels from a block's first one on.
  void (*run)(const Product& product, const Output& output, const PixelShare& share) = nullptr;
};

Kernel AmxKernel();

}  // namespace mxplan::tiles

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_TILES_KERNELS_H_
