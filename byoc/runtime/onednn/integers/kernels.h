// Sums of products of 8-bit integers on images with channels last, as plain functions on pointers.
//
//   dst = quantised(post_ops(scale[c] * (sum(src * weights[c]) - zero point's part) + bias[c]))
//
// Sums stay in registers from their first product to the number that is written.  Dense kernels
// take sums over all channels in a window, depthwise ones over a window of one channel.  With VNNI
// an instruction adds up four products of bytes.  Without it, as with AVX2 alone, that of two would
// not fit into 16 bits, and what there is for bytes saturates; so numbers become words of 16 bits,
// with their zero point taken off, and an instruction adds up two products of these.  AMX adds up
// those of tiles, whose sums go through memory on their way to results.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"
#include "onednn/post_ops/codes.h"
#include "onednn/windows/pixel_geometry.h"

namespace mxplan::integers {

constexpr int64_t kFour = 4;    // bytes of src that a lane multiplies: of four numbers, or of two
constexpr int64_t kLane = 16;   // channels in a block of weights
constexpr int64_t kPanel = 64;  // channels of a panel, at most
constexpr int64_t kTileDepth = 64;

using post_ops::PostOp;

// The result, and how sums become its numbers.
struct Result {
  void* dst = nullptr;
  int64_t pixel = 0;  // numbers from a pixel of dst to the next
  Number number = Number::kUnsigned;
  const float* scales = nullptr;  // of the weights
  bool scale_per_channel = false;
  float src_scale = 1;
  float dst_scale = 1;  // of integers
  int32_t dst_zero = 0;
  post_ops::Output output;  // operands like dst have its type
};

struct Source {
  const uint8_t* data = nullptr;
  bool is_signed = false;
  int32_t zero = 0;  // the integer that stands for 0
};

// Weights have as many numbers for each word of src.
struct Dense : PixelGeometry {
  explicit Dense(const PixelGeometry& geometry) : PixelGeometry(geometry) {}
  Source src;
  const int8_t* weights =
      nullptr;  // [blocks of kLane channels][rows][depth / kFour][kLane][numbers]
  int64_t weights_block = 0, weights_row = 0;  // bytes of each
  int64_t channels = 0;
  uint8_t* scratch = nullptr;  // of this thread, for copies
  Result result;
};

// One channel of dst for each of src.
struct Depthwise {
  Source src;
  const int8_t* weights = nullptr;  // [rows of the window][columns][channels]
  int64_t channels = 0;
  int64_t height = 0, width = 0;  // of src
  int64_t dst_height = 0, dst_width = 0;
  int64_t rows = 0, columns = 0;  // of the window
  int64_t stride_y = 1, stride_x = 1;
  int64_t top = 0, left = 0;  // padding
  Result result;
};

struct DenseKernel {
  const char* instructions = "";
  int64_t numbers = kFour;  // of src in kFour bytes
  // Makes words of `count` numbers, which `run` reads as its src; null where it reads bytes.
  void (*widen)(const Source& src, const uint8_t* from, int64_t count, int16_t* to) = nullptr;
  // Pixels [begin, end) of all, and channels from a block's first one on.
  void (*run)(const Dense& product, int64_t begin, int64_t end, int64_t first_channel,
              int64_t channels) = nullptr;
  // Bytes of scratch memory for copies, where weights are those of windows' rows behind each other,
  // [blocks of kLane channels][depth of all rows / kFour][kLane][numbers], filled up to kTileDepth;
  // null where they are as Dense has them.
  int64_t (*copies)(const Dense& product) = nullptr;
};

struct DepthwiseKernel {
  const char* name = "";
  int64_t (*scratch)(const Depthwise& product) = nullptr;  // bytes
  // Rows [begin, end) of an image's dst.
  void (*run)(const Depthwise& product, int64_t image, int64_t begin, int64_t end,
              uint8_t* scratch) = nullptr;
};

DenseKernel AmxDense();
DenseKernel Avx512VnniDense();
DenseKernel Avx2Dense();
DepthwiseKernel Avx512VnniDepthwise();
DepthwiseKernel Avx2Depthwise();

}  // namespace mxplan::integers

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_INTEGERS_KERNELS_H_
