// Windows over each channel by itself, for bfloat16 with channels last, as plain functions on
// pointers.
//
//   dst[pixel][c] = post_ops(bias[c] + sum of weights[tap][c] * src[pixel of the tap][c])
//
// Sums are in float32.  Taps in the padding are left out, so nothing there is multiplied.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DEPTHWISE_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DEPTHWISE_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"
#include "onednn/post_ops/codes.h"

namespace mxplan::depthwise {

using post_ops::Output;
using post_ops::PostOp;

// Channels whose weights stand together, first those of even numbers and then those of odd ones:
// the low and the high halves of the words of src.
constexpr int64_t kBlock = 32;

// Extents, and distances of taps, of both axes of images.
struct Axis {
  int64_t src = 0, dst = 0, window = 0;
  int64_t stride = 1, dilation = 1, padding = 0;  // that in front

  // The taps that pixel `at` of dst has inside of src: a first one, and one behind the last.
  int64_t FirstTap(int64_t at) const {
    const int64_t begin = at * stride - padding;
    return begin < 0 ? (dilation - 1 - begin) / dilation : 0;
  }
  int64_t EndTap(int64_t at) const {
    const int64_t left = src - at * stride + padding;
    const int64_t end = left > 0 ? (left + dilation - 1) / dilation : 0;
    return end < window ? end : window;
  }
};

// Whether a column of src is loaded once for all pixels of a row that are summed together.
inline bool ReusesColumns(const Axis& x) {
  return x.dilation == 1 && x.stride <= 2 && x.window > x.stride;
}

struct Depthwise {
  const uint16_t* src = nullptr;
  const float* weights = nullptr;  // [blocks][taps][two][half a block]
  void* dst = nullptr;
  Real number = kRealShort;  // of dst, and of what post-ops read as it stands there
  int64_t channels = 0;
  Axis y, x;
  post_ops::Cut cut;
};

// Rows of dst of an image, and blocks of channels of them.
struct Part {
  int64_t image = 0;
  int64_t row = 0, end_row = 0;
  int64_t block = 0, end_block = 0;
};

struct Kernel {
  const char* name = "";
  void (*run)(const Depthwise& product, const Output& output, const Part& part) = nullptr;
};

Kernel Avx512Bf16Kernel();

}  // namespace mxplan::depthwise

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DEPTHWISE_KERNELS_H_
