// The largest of windows over images of 8-bit integers or numbers in bfloat16 with channels last,
// as plain functions on pointers.  What is no number is larger than all that are.
//
// A row of dst comes about in one of two ways:
//
//   at once    every window's vectors are compared where they stand
//   in turns   first the rows of src that a row of dst sees, pixel by pixel, into a row in cache
//              with the least number beside it for padding; then the pixels of that row
//
// In turns, what windows share along a row is compared once, and vectors run through whole rows
// whatever the channels are.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_MAXIMA_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_MAXIMA_KERNELS_H_

#include <cstdint>

namespace mxplan::maxima {

struct Axis {
  int64_t src = 1, dst = 1;  // extents
  int64_t window = 1, stride = 1;
  int64_t dilation = 1;  // from an element of a window to the next
  int64_t padding = 0;   // in front of src
};

enum class Element : uint8_t { kUnsigned, kSigned, kShort };
constexpr int kElements = 3;

struct Windows {
  int64_t pixel = 0;  // bytes
  Axis depth, height, width;
};

// Pixels [begin, end) of dst, counted through all images.
using Run = void (*)(const Windows& of, const uint8_t* src, uint8_t* dst, int64_t begin,
                     int64_t end, uint8_t* scratch);

struct Kernel {
  const char* name = "";
  int64_t (*scratch)(const Windows& of) = nullptr;  // bytes
  Run run[kElements] = {};                          // by Element
};

Kernel Avx512Kernel();
Kernel Avx2Kernel();

}  // namespace mxplan::maxima

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_MAXIMA_KERNELS_H_
