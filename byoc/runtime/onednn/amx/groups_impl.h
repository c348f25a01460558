// Pixels in groups whose windows tiles multiply together; included behind amx_impl.h.
//
// Tiles read rows at one distance.  Pixels of a line are such rows, and those of all lines
// where a line ends as far in front of the next as pixels stand apart, with some between them that
// belong to no line: whatever takes fewer tiles.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_AMX_GROUPS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_AMX_GROUPS_IMPL_H_

#include <algorithm>
#include <cstdint>

#include "onednn/amx/amx_impl.h"
#include "onednn/windows/pixel_geometry.h"

namespace mxplan::amx {
namespace {

// Whole steps of a window's rows are read where they stand.  Otherwise the rows of a window are
// copied one behind the other, or what is left of its only one is.
inline Steps StepsOf(const PixelGeometry& geometry) {
  constexpr int64_t kWord = 4;
  Steps steps;
  const int64_t whole = geometry.depth / kStep, rest = geometry.depth % kStep;
  if (geometry.rows == 1 && whole == 0 && rest % kWord == 0) {
    steps.of_group = 1;
    steps.width = rest;
  } else if (geometry.rows == 1 || rest == 0) {
    steps.groups = geometry.rows;
    steps.group = geometry.src_row;
    steps.of_group = whole;
    steps.copied = rest > 0 ? 1 : 0;
  } else {
    steps.groups = 0;
    steps.copied = (geometry.rows * geometry.depth + kStep - 1) / kStep;
  }
  return steps;
}

constexpr int64_t kNone = -1;

struct Group {
  Rows rows;
  Steps steps;
  int64_t pixels[kMostRows];  // of dst, or kNone
  int64_t count = 0;          // of rows
};

class Groups {
 public:
  // Of pixels [begin, end).  `scratch` has as many bytes as CopiesOf says for each group that is
  // used at a time.
  Groups(const PixelGeometry& geometry, const uint8_t* src, int64_t begin, int64_t end,
         uint8_t* scratch)
      : geometry_(geometry), steps_(StepsOf(geometry)), src_(src), scratch_(scratch) {
    line_ = begin / geometry.line;
    column_ = begin % geometry.line;
    last_line_ = (end - 1) / geometry.line;
    last_end_ = (end - 1) % geometry.line + 1;
    pitch_ = Pitch();
  }

  static int64_t CopiesOf(const PixelGeometry& geometry) {
    const int64_t copied = StepsOf(geometry).copied;
    return copied > 0 ? (kMostRows * copied + 1) * kStep : 0;
  }

  // The next `most` groups, or as many as there are.
  int64_t Take(int64_t most, Group* groups) {
    int64_t taken = 0;
    while (taken < most && !Done()) {
      uint8_t* const copies = scratch_ + taken * CopiesOf(geometry_);
      TakeOne(copies, &groups[taken++]);
    }
    return taken;
  }

 private:
  bool Done() const { return line_ > last_line_ || (line_ == last_line_ && column_ >= last_end_); }
  int64_t LineEnd() const { return line_ == last_line_ ? last_end_ : geometry_.line; }

  // Rows from a line to the next where lines are taken together, else 0.
  int64_t Pitch() const {
    const int64_t first = line_ - geometry_.first_line, last = last_line_ - geometry_.first_line;
    if (first == last || first / geometry_.lines != last / geometry_.lines) return 0;
    if (geometry_.src_line % geometry_.src_pixel != 0) return 0;
    const int64_t pitch = geometry_.src_line / geometry_.src_pixel;
    const auto tiles = [](int64_t rows) { return (rows + kTileRows - 1) / kTileRows; };
    const int64_t together = tiles((last - first) * pitch + last_end_ - column_);
    const int64_t apart = (last - first + 1) * tiles(geometry_.line);
    return pitch >= geometry_.line && together < apart ? pitch : 0;
  }

  void TakeOne(uint8_t* copies, Group* group) {
    group->count = 0;
    group->rows.stride = geometry_.src_pixel;
    for (int half = 0; half < 2; ++half) group->rows.count[half] = TakeHalf(half, group);
    group->steps = steps_;
    group->steps.copies = copies;
    if (steps_.copied > 0) CopyRows(group->rows, copies);
  }

  int64_t TakeHalf(int half, Group* group) {
    if (Done()) return 0;
    group->rows.from[half] = src_ + geometry_.LineAt(line_) + column_ * geometry_.src_pixel;
    return pitch_ > 0 ? TakeTogether(group) : TakeOfLine(group);
  }

  // All parts of a line have about the same number.
  int64_t TakeOfLine(Group* group) {
    const int64_t left = LineEnd() - column_, parts = (left + kTileRows - 1) / kTileRows;
    const int64_t count = (left + parts - 1) / parts, first = line_ * geometry_.line + column_;
    for (int64_t i = 0; i < count; ++i) group->pixels[group->count + i] = first + i;
    group->count += count;
    column_ += count;
    if (column_ == geometry_.line) NextLine();
    return count;
  }

  int64_t TakeTogether(Group* group) {
    int64_t taken = 0;
    for (; taken < kTileRows && !Done(); ++taken) {
      const bool there = column_ < geometry_.line;
      group->pixels[group->count++] = there ? line_ * geometry_.line + column_ : kNone;
      if (++column_ == pitch_) NextLine();
    }
    return taken;
  }

  void NextLine() {
    column_ = 0;
    ++line_;
  }

  void CopyRows(const Rows& rows, uint8_t* to) const {
    for (int half = 0; half < 2; ++half) {
      for (int64_t row = 0; row < rows.count[half]; ++row, to += steps_.copied * kStep) {
        CopyPixel(rows.from[half] + row * rows.stride, to);
      }
    }
  }

  void CopyPixel(const uint8_t* from, uint8_t* to) const {
    const int64_t read = steps_.groups > 0 ? steps_.of_group * kStep : 0;
    _mm512_storeu_si512(to + (steps_.copied - 1) * kStep, _mm512_setzero_si512());
    for (int64_t row = 0; row < geometry_.rows; ++row) {
      to = Copy(from + row * geometry_.src_row + read, geometry_.depth - read, to);
    }
  }

  const PixelGeometry& geometry_;
  Steps steps_;
  const uint8_t* src_;
  uint8_t* scratch_;
  int64_t line_, column_;  // of the next row; columns from geometry_.line on are between lines
  int64_t last_line_, last_end_;
  int64_t pitch_;
};

}  // namespace
}  // namespace mxplan::amx

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_AMX_GROUPS_IMPL_H_
