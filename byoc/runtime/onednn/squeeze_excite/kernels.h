// Squeeze-and-excite in parts, as plain functions on pointers: a sample's channels have means over
// its pixels, small products make a gate of them for each channel, and pixels are multiplied by it.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"
#include "onednn/post_ops/codes.h"

namespace mxplan::squeeze_excite {

// The places of one sample's numbers, in numbers: `together` channels side by side, and the next
// ones `group_stride` behind them.  Channels alone have their pixels side by side.
struct Image {
  int64_t channels = 0, pixels = 0;
  int64_t together = 1, group_stride = 0, pixel_stride = 1;
};

// dst[s, n] = function(sum over k of src[s, k] * weights[n, k] + bias[n]) for n in [begin, end).
struct Product {
  int64_t inputs = 0, outputs = 0, samples = 0;
  int64_t src_stride = 0, dst_stride = 0;  // from one sample to the next
  const void* weights = nullptr;           // in one of two orders; see Kernels
  const float* bias = nullptr;             // none: 0
  post_ops::PostOp function;
};

// Behind the gate.  `others` has the operand of each post-op, null where it has none.
struct Ending {
  const post_ops::PostOp* post_ops = nullptr;
  const void* const* others = nullptr;
  int64_t count = 0;
};

// By the type of images and weights; they are computed with in float32.
struct Kernels {
  const char* name = "";
  // Means of the channels [begin, end), whole groups where groups have an order of their own.
  void (*means[kReals])(const Image& image, const void* src, int64_t begin, int64_t end,
                        float* means) = {};
  // The channels [begin, end) times their gates; src may be dst.
  void (*scale[kReals])(const Image& image, const void* src, int64_t begin, int64_t end,
                        const float* gates, const Ending& ending, void* dst) = {};
  // Products with weights [outputs, inputs], and with weights [inputs, outputs].
  void (*by_rows[kReals])(const Product& product, const float* src, int64_t begin, int64_t end,
                          float* dst) = {};
  void (*by_columns[kReals])(const Product& product, const float* src, int64_t begin, int64_t end,
                             float* dst) = {};
};

Kernels Avx512Bf16Kernels();
Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

}  // namespace mxplan::squeeze_excite

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_KERNELS_H_
