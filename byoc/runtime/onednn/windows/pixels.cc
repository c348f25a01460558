// The geometry of dense products; see pixels.h.
#include "onednn/windows/pixels.h"

#include <algorithm>

#include "onednn/layout.h"

namespace mxplan {
namespace {

constexpr int64_t kMostWindow = 16, kMostStride = 8;

}  // namespace

Reach ReachOf(StepBuilder* b) {
  const Dims& src = b->Get("src").dims;
  const Dims& filter = b->Get("weights").dims;
  const Dims& dst = b->Get("dst").dims;
  if (src.size() != 4 || dst.size() != 4 || filter.size() != 4 || b->Integer("groups") != 1) {
    return Reach::kNone;
  }
  for (int64_t extent : {src[0], src[1], dst[1], dst[2], dst[3]}) {
    if (extent == 0) return Reach::kNone;
  }
  if (!IsChannelsLast(b->Desc("src")) || !IsChannelsLast(b->Desc("dst"))) return Reach::kNone;
  const Dims &strides = b->Integers("strides", 2, 1), &dilation = b->Integers("dilation", 2, 1);
  const Dims& padding = b->Integers("padding", 4, 0);
  if (filter[2] == 1 && filter[3] == 1 &&
      std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; })) {
    return Reach::kPixel;
  }
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t window = filter[2 + axis];
    if (window > kMostWindow || strides[axis] > kMostStride || dilation[axis] != 1 ||
        padding[axis] >= window || padding[2 + axis] >= window) {
      return Reach::kNone;
    }
  }
  return Reach::kWindow;
}

int64_t PixelsOfDst(StepBuilder* b) {
  const Dims& dst = b->Get("dst").dims;
  return dst[0] * dst[2] * dst[3];
}

Pixels SinglePixels(StepBuilder* b, int64_t item) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const Dims& strides = b->Integers("strides", 2, 1);
  const int64_t pixel = src[1] * item;
  if (strides[0] == 1 && strides[1] == 1) return RowPixels(PixelsOfDst(b), src[1], item);
  Pixels pixels;
  pixels.depth = pixel;
  pixels.src_pixel = strides[1] * pixel;
  pixels.src_line = strides[0] * src[3] * pixel;
  pixels.src_image = src[2] * src[3] * pixel;
  pixels.line = dst[3];
  pixels.lines = dst[2];
  return pixels;
}

Pixels WindowPixels(StepBuilder* b, const Bands& bands, int64_t item) {
  const Dims& src = b->Get("src").dims;
  const Dims& filter = b->Get("weights").dims;
  Pixels pixels;
  pixels.rows = filter[2];
  pixels.depth = filter[3] * src[1] * item;
  pixels.src_row = bands.padded_row;
  pixels.src_pixel = b->Integers("strides", 2, 1)[1] * src[1] * item;
  pixels.src_line = bands.stride * bands.padded_row;
  pixels.line = b->Get("dst").dims[3];
  return pixels;
}

Pixels RowPixels(int64_t rows, int64_t numbers, int64_t item) {
  Pixels pixels;
  pixels.depth = pixels.src_pixel = numbers * item;
  pixels.line = rows;
  pixels.lines = 1;
  return pixels;
}

}  // namespace mxplan
