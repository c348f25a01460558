// The geometry of dense products on images: the numbers of src that each pixel of dst is made of.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_PIXEL_GEOMETRY_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_PIXEL_GEOMETRY_H_

#include <cstdint>

namespace mxplan {

struct Bands;
class StepBuilder;

// Pixels of dst are counted through all images.  Those of a line stand at one distance in src;
// where all do, they are one line.  A row of a window is `depth` bytes that follow each other in
// src, with channels last: those of its pixels.
struct PixelGeometry {
  int64_t rows = 1;                                    // of a window
  int64_t depth = 0;                                   // bytes of a row
  int64_t src_row = 0;                                 // bytes from a row of a window to the next
  int64_t src_pixel = 0, src_line = 0, src_image = 0;  // bytes from one to the next that is used
  int64_t line = 0;                                    // pixels
  int64_t lines = 0;                                   // of an image
  int64_t first_line = 0;                              // that src begins with

  // Bytes from the beginning of src.
  int64_t LineAt(int64_t line) const {
    const int64_t there = line - first_line;
    return there / lines * src_image + there % lines * src_line;
  }
};

// The reach of a convolution with constant filters, and channels last at both ends: a pixel of all
// channels, a window of these, or one of each channel by itself.
enum class Reach : uint8_t { kNone, kPixel, kWindow, kWindowOfChannel };
Reach ReachOf(StepBuilder* b);

constexpr int64_t kMostWindowRows = 16;

// Whether windows of images are short, reach into the image wherever they stand, and have no gaps.
bool HasShortWindows(StepBuilder* b);

// The extents of dst along all but its channels.
int64_t PixelsOfDst(StepBuilder* b);

// Pixels of dst, and channels, that one thread computes.
struct PixelShare {
  int64_t begin = 0, end = 0;
  int64_t channel = 0, end_channel = 0;
  int64_t thread = 0, threads = 1;  // of those that have the same channels

  // Threads share pixels, or where these are few panels of as many channels.
  PixelShare(int64_t pixels, int64_t channels, int64_t panel, int64_t one, int64_t of);
};

// Numbers of src have `item` bytes.
PixelGeometry SinglePixels(StepBuilder* b, int64_t item);
// Out of copies of bands.
PixelGeometry WindowPixels(StepBuilder* b, const Bands& bands, int64_t item);
// `rows` that are one line, of so many numbers each.
PixelGeometry RowPixels(int64_t rows, int64_t numbers, int64_t item);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_PIXEL_GEOMETRY_H_
