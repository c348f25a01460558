// Rows of images with channels last, copied with their padding for windows that run over them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_BANDS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_BANDS_H_

#include <algorithm>
#include <cstdint>

#include "onednn/builder/step_builder.h"

namespace mxplan {

// A band is some lines of dst, for which the rows of src that they read are copied.
struct Bands {
  int64_t images = 0, lines = 0;  // of dst
  int64_t height = 0;             // of src
  int64_t window = 1;             // rows
  int64_t stride = 1, top = 0;    // of rows
  int64_t left = 0, row = 0;      // bytes of padding in front of a row of src, and of the row
  int64_t padded_row = 0;         // bytes of a copy
  int64_t most = 1;               // lines of a band

  // Of a band's copy.
  int64_t bytes() const { return ((most - 1) * stride + window) * padded_row; }
  // Of the band that begins at `line` and ends before `end`; lines are counted through all images.
  int64_t LinesFrom(int64_t line, int64_t end) const;
};

// Those of a convolution of images whose numbers have `item` bytes.  A kernel reads all weights
// once for each band, so bands have more lines beside `weights` of many bytes.
Bands BandsOf(StepBuilder* b, int64_t item, int64_t weights = 0);

// Calls run(line, lines) for the bands of a thread's share of all lines.
template <typename Run>
void ForBands(const Bands& bands, int64_t thread, int64_t threads, const Run& run) {
  const int64_t all = bands.images * bands.lines, end = all * (thread + 1) / threads;
  for (int64_t line = all * thread / threads, lines = 0; line < end; line += lines) {
    lines = bands.LinesFrom(line, end);
    run(line, lines);
  }
}

// The rows that `lines` from `line` on read, of src that begins at its first image.
void CopyBand(const Bands& bands, const uint8_t* src, int64_t line, int64_t lines, uint8_t padding,
              uint8_t* to);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINDOWS_BANDS_H_
