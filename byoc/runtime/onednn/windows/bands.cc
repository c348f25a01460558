// The geometry and the copies of bands; see bands.h.
#include "onednn/windows/bands.h"

#include <algorithm>
#include <cstring>

namespace mxplan {
namespace {

// Of copied rows, which stay in cache until they are read: in that of 2 MiB which cores with AMX
// have beside many weights, of which only its kernels tell.
constexpr int64_t kBandBytes = 96 << 10, kMostBandBytes = 512 << 10;

}  // namespace

int64_t Bands::LinesFrom(int64_t line, int64_t end) const {
  return std::min({most, lines - line % lines, end - line});
}

Bands BandsOf(StepBuilder* b, int64_t item, int64_t weights) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const Dims& filter = b->Get("weights").dims;
  const Dims& strides = b->Integers("strides", 2, 1);
  const Dims& padding = b->Integers("padding", 4, 0);
  const int64_t pixel = src[1] * item;
  Bands bands;
  bands.images = dst[0];
  bands.lines = dst[2];
  bands.height = src[2];
  bands.window = filter[2];
  bands.stride = strides[0];
  bands.top = padding[0];
  bands.left = padding[1] * pixel;
  bands.row = src[3] * pixel;
  bands.padded_row = ((dst[3] - 1) * strides[1] + filter[3]) * pixel;
  const int64_t bytes = std::clamp(weights / 2, kBandBytes, kMostBandBytes);
  const int64_t rows = std::max(bytes / bands.padded_row - bands.window, int64_t{0});
  bands.most = std::clamp<int64_t>(1 + rows / bands.stride, 1, dst[2]);
  return bands;
}

void CopyBand(const Bands& bands, const uint8_t* src, int64_t line, int64_t lines, uint8_t padding,
              uint8_t* to) {
  const uint8_t* image = src + line / bands.lines * bands.height * bands.row;
  const int64_t first = line % bands.lines * bands.stride - bands.top;
  const int64_t count = (lines - 1) * bands.stride + bands.window;
  const int64_t row = std::min(bands.row, bands.padded_row - bands.left);
  const int64_t right = bands.left + row;
  for (int64_t y = first; y < first + count; ++y, to += bands.padded_row) {
    if (y < 0 || y >= bands.height) {
      std::memset(to, padding, static_cast<size_t>(bands.padded_row));
      continue;
    }
    std::memset(to, padding, static_cast<size_t>(bands.left));
    std::memcpy(to + bands.left, image + y * bands.row, static_cast<size_t>(row));
    std::memset(to + right, padding, static_cast<size_t>(bands.padded_row - right));
  }
}

}  // namespace mxplan
