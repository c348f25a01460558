// Sums over all channels in windows, for bfloat16, as plain functions on pointers.
//
//   dst[pixel][lanes] = post_ops(bias[lanes] + weights[y][pair][lanes] . src[pixel's row y][pair])
//
// A row of a window is numbers that follow each other in src, with channels last: those of its
// pixels.  Two of them are one word, which is read in its place for all lanes; so nothing is
// wasted on images of few channels.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"
#include "onednn/post_ops/codes.h"

namespace mxplan::windows {

using post_ops::Output;
using post_ops::PostOp;

// Lines of dst, of one image; offsets in dst are numbers from its beginning, and those in src
// bytes from the copy of a band on.
struct Lines {
  const uint8_t* src = nullptr;
  int64_t src_pixel = 0, src_row = 0, src_line = 0;
  const uint8_t* weights = nullptr;  // [blocks of lanes][rows][pairs][lanes][two]
  int64_t weights_row = 0;           // bytes
  int64_t rows = 0, pairs = 0;       // of a window, and of a row of it, whole ones
  bool one_more = false;             // number in a row
  int64_t channels = 0;
  void* dst = nullptr;
  Real number = kRealShort;                 // of dst, and of what post-ops read as it stands there
  int64_t first = 0;                        // of the first line
  int64_t pixel = 0, vector = 0, line = 0;  // from one to the next in dst
  int64_t pixels = 0, count = 0;            // of a line, and lines
  bool blocks = false;  // of channels, as many as a vector has, with zeros behind the last
  post_ops::Cut cut;
};

struct Kernels {
  const char* name = "";
  void (*run)(const Lines& lines, const Output& output) = nullptr;
};

constexpr int64_t kLanesOfBlock = 16;

Kernels Avx512Bf16Kernels();

}  // namespace mxplan::windows

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_KERNELS_H_
