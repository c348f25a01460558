// Cuts convolutions into parts, and counts their places; see parts.h and kernels.h.
#include "onednn/few_outputs/parts.h"

#include <algorithm>
#include <cmath>

#include "memory/buffer.h"

namespace mxplan::few_outputs {
namespace {

constexpr int64_t kSumsBytes = 256 << 10;  // of a part, about
constexpr int64_t kMostColumns = 1 << 10;  // of a part

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }
int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

// The places of number 0 of src under all taps.
Range Reach(const Axis& axis) {
  const int64_t last = axis.Place(0, axis.window - 1);
  return {std::min(axis.first, last), std::max(axis.first, last) + 1};
}

// Sets an axis' parts to at most so many places each.
void CutInto(Parts* parts, const Convolution& c, size_t axis, int64_t most) {
  const int64_t extent = c.axes[axis].dst, phases = axis == kColumn ? c.phases() : 1;
  const int64_t count = CeilDiv(extent, std::clamp<int64_t>(most, 1, extent));
  parts->size[axis] = CeilDiv(CeilDiv(extent, count), phases) * phases;
  parts->count[axis] = CeilDiv(extent, parts->size[axis]);
}

}  // namespace

Range SourceOf(const Axis& axis, const Range& places) {
  const Range reach = Reach(axis);
  Range src;
  src.begin = std::max<int64_t>(CeilDiv(places.begin - (reach.end - 1), axis.scale), 0);
  src.end = std::min(FloorDiv(places.end - 1 - reach.begin, axis.scale) + 1, axis.src);
  src.end = std::max(src.begin, src.end);
  return src;
}

// They are about square where there are planes, since the rows at their edges are read by others
// too.
Parts PartsOf(const Convolution& c, int64_t images, int64_t threads) {
  Parts parts;
  parts.images = images;
  CutInto(&parts, c, kColumn, kMostColumns);
  const int64_t row =
      c.outputs * AlignUp(parts.size[kColumn] * static_cast<int64_t>(sizeof(float)));
  const int64_t rows = std::max<int64_t>(kSumsBytes / row, 1);
  const auto side = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(rows))));
  const int64_t height = c.axes[kRow].dst, depth = c.axes[kPlane].dst;
  CutInto(&parts, c, kPlane, depth == 1 ? 1 : rows / std::min(side, height));
  CutInto(&parts, c, kRow, rows / parts.size[kPlane]);
  for (size_t axis : {kRow, kPlane, kColumn}) {
    const int64_t others = parts.all() / parts.count[axis];
    if (parts.all() % threads == 0) break;
    // As many as the threads share evenly, or one for each.
    const int64_t wanted = CeilDiv(CeilDiv(parts.all(), threads) * threads, others);
    CutInto(&parts, c, axis, CeilDiv(c.axes[axis].dst, wanted));
    if (parts.all() >= threads) break;
  }
  return parts;
}

Tables::Tables(Convolution* c) {
  const auto& [planes, rows, columns] = c->axes;
  const int64_t phases = c->phases();
  auto shift = [&](int64_t x) { return FloorDiv(columns.Place(0, x), phases); };
  const int64_t last = columns.window - 1;
  c->before = std::max(shift(0), shift(last));
  c->read = c->before - std::min(shift(0), shift(last));
  for (int64_t phase = 0; phase < phases; ++phase) {
    for (int64_t x = 0; x < columns.window; ++x) {
      if (columns.Place(0, x) - shift(x) * phases != phase) continue;
      taps.push_back({x * c->inputs * c->products(), c->before - shift(x)});
    }
    ends.push_back(static_cast<int64_t>(taps.size()));
  }
  for (int64_t z = 0; z < planes.window; ++z) {
    for (int64_t y = 0; y < rows.window; ++y) {
      const int64_t row = (z * planes.step * c->part_rows + y * rows.step) * c->row();
      for (int64_t o = 0; o < c->outputs; ++o) sums.push_back(row + o * phases * c->pitch);
    }
  }
}

void Tables::PutInto(Convolution* c) const {
  c->taps = taps.data();
  c->ends = ends.data();
  c->sums = sums.data();
}

}  // namespace mxplan::few_outputs
