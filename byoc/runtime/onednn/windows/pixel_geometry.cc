// The geometry of dense products; see pixel_geometry.h.
#include "onednn/windows/pixel_geometry.h"

#include <algorithm>

#include "onednn/builder/step_builder.h"
#include "onednn/layout.h"
#include "onednn/windows/bands.h"

namespace mxplan {
namespace {

constexpr int64_t kMostStride = 8;
constexpr int64_t kPixelsOfThread = 96;  // fewer, and threads share channels instead

}  // namespace

bool HasShortWindows(StepBuilder* b) {
  const Dims& filter = b->Get("weights").dims;
  const Dims &strides = b->Integers("strides", 2, 1), &dilation = b->Integers("dilation", 2, 1);
  const Dims& padding = b->Integers("padding", 4, 0);
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t window = filter[filter.size() - 2 + axis];
    if (window > kMostWindowRows || strides[axis] > kMostStride || dilation[axis] != 1 ||
        padding[axis] >= window || padding[2 + axis] >= window) {
      return false;
    }
  }
  return true;
}

Reach ReachOf(StepBuilder* b) {
  const Dims& src = b->Get("src").dims;
  const Dims& filter = b->Get("weights").dims;
  const Dims& dst = b->Get("dst").dims;
  if (src.size() != 4 || dst.size() != 4 || !b->IsConstant("weights")) return Reach::kNone;
  if (b->Desc("weights").get_inner_nblks() != 0) return Reach::kNone;
  for (int64_t extent : {src[0], src[1], dst[1], dst[2], dst[3]}) {
    if (extent == 0) return Reach::kNone;
  }
  if (!IsChannelsLast(b->Desc("src")) || !IsChannelsLast(b->Desc("dst"))) return Reach::kNone;
  const Dims& padding = b->Integers("padding", 4, 0);
  const int64_t groups = b->Integer("groups");
  const bool dense = groups == 1 && filter.size() == 4;
  if (dense && filter[2] == 1 && filter[3] == 1 &&
      std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; })) {
    return Reach::kPixel;
  }
  if (!dense && (groups != src[1] || groups != dst[1] || filter.size() != 5)) return Reach::kNone;
  if (!HasShortWindows(b)) return Reach::kNone;
  return dense ? Reach::kWindow : Reach::kWindowOfChannel;
}

PixelShare::PixelShare(int64_t pixels, int64_t channels, int64_t panel, int64_t one, int64_t of)
    : end_channel(channels) {
  const int64_t panels = (channels + panel - 1) / panel;
  if (pixels < kPixelsOfThread * of && panels >= of) {
    channel = panels * one / of * panel;
    end_channel = std::min(panels * (one + 1) / of * panel, channels);
  } else {
    thread = one;
    threads = of;
  }
  begin = pixels * thread / threads;
  end = pixels * (thread + 1) / threads;
}

int64_t PixelsOfDst(StepBuilder* b) {
  const Dims& dst = b->Get("dst").dims;
  return dst[0] * dst[2] * dst[3];
}

PixelGeometry SinglePixels(StepBuilder* b, int64_t item) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const Dims& strides = b->Integers("strides", 2, 1);
  const int64_t pixel = src[1] * item;
  if (strides[0] == 1 && strides[1] == 1) return RowPixels(PixelsOfDst(b), src[1], item);
  PixelGeometry geometry;
  geometry.depth = pixel;
  geometry.src_pixel = strides[1] * pixel;
  geometry.src_line = strides[0] * src[3] * pixel;
  geometry.src_image = src[2] * src[3] * pixel;
  geometry.line = dst[3];
  geometry.lines = dst[2];
  return geometry;
}

PixelGeometry WindowPixels(StepBuilder* b, const Bands& bands, int64_t item) {
  const Dims& src = b->Get("src").dims;
  const Dims& filter = b->Get("weights").dims;
  PixelGeometry geometry;
  geometry.rows = filter[2];
  geometry.depth = filter[3] * src[1] * item;
  geometry.src_row = bands.padded_row;
  geometry.src_pixel = b->Integers("strides", 2, 1)[1] * src[1] * item;
  geometry.src_line = bands.stride * bands.padded_row;
  geometry.line = b->Get("dst").dims[3];
  return geometry;
}

PixelGeometry RowPixels(int64_t rows, int64_t numbers, int64_t item) {
  PixelGeometry geometry;
  geometry.depth = geometry.src_pixel = numbers * item;
  geometry.line = rows;
  geometry.lines = 1;
  return geometry;
}

}  // namespace mxplan
