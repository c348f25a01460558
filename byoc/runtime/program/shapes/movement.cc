// Shapes of steps that move elements: concatenations, boxes, indices.
//
// No extent is above 2^31 - 1 and neither is an attribute, so sums and products of two stay within
// 64 bits.
#include <algorithm>

#include "base/error.h"
#include "program/shapes/expectations.h"
#include "program/shapes/step_shapes.h"
#include "program/step_attributes.h"

namespace mxplan {
namespace {

// `inner` as a box inside `outer`, each role given, from the attribute begin on.
void CheckBox(const StepView& s, const char* outer_role, const char* inner_role) {
  const Dims &outer = s.Shape(outer_role), &inner = s.Shape(inner_role);
  const Dims& begin = IntegersOf(s.step(), "begin", outer.size(), 0);
  ExpectRank(s, inner_role, outer.size(), outer.size());
  for (size_t i = 0; i < outer.size(); ++i) {
    if (begin[i] + inner[i] > outer[i]) {
      ThrowInvalidInput(inner_role, ": the box leaves the larger tensor on axis ", i,
                        ": expected at most ", outer[i], ", got ", begin[i], " + ", inner[i]);
    }
  }
}

// Some elements of a larger tensor, every so many-th of each axis.
void ExpectStrided(const StepView& s, const char* role, const Dims& some, const Dims& whole,
                   int64_t least_step) {
  ExpectRank(s, role, whole.size(), whole.size());
  const Dims& begin = IntegersOf(s.step(), "begin", whole.size(), 0);
  const Dims& steps = IntegersOf(s.step(), "steps", whole.size(), least_step);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (some[i] == 0) continue;
    const int64_t last = begin[i] + (some[i] - 1) * steps[i];
    if (begin[i] >= whole[i] || last < 0 || last >= whole[i]) {
      ThrowInvalidInput(role, ": elements ", begin[i], " to ", last, " of axis ", i,
                        ": expected some from 0 to ", whole[i] - 1);
    }
  }
}

void ExpectReduction(const StepView& s) {
  const std::string& algorithm = TextOf(s.step(), "algorithm");
  if (algorithm != "update" && algorithm != "add" && algorithm != "min" && algorithm != "max") {
    ThrowInvalidInput("attribute algorithm: expected update, add, min or max, got ", algorithm);
  }
}

// Indices along one axis, within the data's extents along all others.
void ExpectElements(const StepView& s) {
  const Dims &src = s.Shape("src"), &indices = s.Shape("indices");
  const auto axis = static_cast<size_t>(AxisOf(s, src));
  ExpectRank(s, "indices", src.size(), src.size());
  for (size_t i = 0; i < src.size(); ++i) {
    if (i == axis || indices[i] <= src[i]) continue;
    ThrowInvalidInput("indices: expected at most ", src[i], " on axis ", i, ", got shape ",
                      ToString(indices));
  }
}

}  // namespace

void CheckConcat(const StepView& s) {
  const Dims& dst = s.Shape("dst");
  const auto axis = static_cast<size_t>(AxisOf(s, dst));
  int64_t extent = 0;
  size_t pieces = 0;
  for (const Operand& operand : s.step().operands) {
    if (operand.role != "src") continue;
    const Dims& piece = s.ShapeOf(operand.value);
    for (size_t i = 0; i < dst.size(); ++i) {
      if (piece.size() != dst.size() || (i != axis && piece[i] != dst[i])) {
        ThrowInvalidInput("src: piece ", pieces, " does not fit dst: expected ", ToString(dst),
                          " but for axis ", axis, ", got ", ToString(piece));
      }
    }
    extent += piece[axis];
    ++pieces;
  }
  const size_t most = s.limits().pieces;
  if (pieces > most) ThrowInvalidInput("src: expected at most ", most, " pieces, got ", pieces);
  if (extent != dst[axis]) {
    ThrowInvalidInput("src: ", pieces, " pieces give ", extent, " of ", dst[axis], " on axis ",
                      axis);
  }
}

void CheckShuffle(const StepView& s) {
  const Dims& src = s.Shape("src");
  int64_t extent = src[static_cast<size_t>(AxisOf(s, src))];
  int64_t groups = IntegerOf(s.step(), "groups");
  if (groups < 1 || groups > INT32_MAX || extent % groups != 0) {
    ThrowInvalidInput("attribute groups: ", extent, " channels in ", groups, " groups");
  }
  CheckSameShape(s);
}

void CheckResampling(const StepView& s) {
  ExpectRank(s, "src", 3, 5);
  const Dims& src = s.Shape("src");
  Dims expected = s.Shape("dst");
  ExpectRank(s, "dst", src.size(), src.size());
  std::copy(src.begin(), src.begin() + 2, expected.begin());
  ExpectShape(s, "dst", expected);
}

void CheckGridSample(const StepView& s) {
  ExpectRank(s, "src", 3, 5);
  const Dims &src = s.Shape("src"), &dst = s.Shape("dst");
  ExpectRank(s, "dst", src.size(), src.size());
  Dims expected = dst, grid = dst;
  std::copy(src.begin(), src.begin() + 2, expected.begin());
  ExpectShape(s, "dst", expected);
  grid[1] = static_cast<int64_t>(src.size()) - 2;
  ExpectShape(s, "grid", grid);
  for (size_t i = 2; i < src.size(); ++i) {
    if (src[i] == 0) ThrowInvalidInput("src: expected elements on axis ", i, ", got none");
  }
}

void CheckPad(const StepView& s) { CheckBox(s, "dst", "src"); }

void CheckSlice(const StepView& s) { CheckBox(s, "src", "dst"); }

void CheckStridedSlice(const StepView& s) {
  ExpectStrided(s, "dst", s.Shape("dst"), s.Shape("src"), -INT32_MAX);
}

void CheckGatherElements(const StepView& s) {
  ExpectElements(s);
  ExpectShape(s, "dst", s.Shape("indices"));
}

void CheckScatterElements(const StepView& s) {
  ExpectReduction(s);
  ExpectElements(s);
  ExpectShape(s, "updates", s.Shape("indices"));
  ExpectShape(s, "dst", s.Shape("src"));
}

void CheckPut(const StepView& s) {
  const Dims& src = s.Shape("src");
  ExpectShape(s, "dst", src);
  ExpectStrided(s, "part", s.Shape("part"), src, 1);
}

void CheckScatter(const StepView& s) {
  const Dims &src = s.Shape("src"), &indices = s.Shape("indices");
  ExpectReduction(s);
  ExpectShape(s, "dst", src);
  ExpectRank(s, "indices", 1, 12);
  const int64_t depth = indices.back();
  if (depth > static_cast<int64_t>(src.size())) {
    ThrowInvalidInput("indices: expected at most ", src.size(), " of a place, got shape ",
                      ToString(indices));
  }
  Dims updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), src.begin() + depth, src.end());
  ExpectShape(s, "updates", updates);
}

void CheckGatherNd(const StepView& s) {
  const Dims &src = s.Shape("src"), &indices = s.Shape("indices");
  ExpectRank(s, "indices", 1, 12);
  const int64_t batch = IntegerOf(s.step(), "batch_axes"), depth = indices.back();
  const auto rank = static_cast<int64_t>(src.size());
  if (batch < 0 || batch >= static_cast<int64_t>(indices.size()) || batch > rank) {
    ThrowInvalidInput("attribute batch_axes: expected some that src and indices have, got ", batch);
  }
  if (depth > rank - batch) {
    ThrowInvalidInput("indices: expected at most ", rank - batch, " of a place, got shape ",
                      ToString(indices));
  }
  for (int64_t i = 0; i < batch; ++i) {
    const auto axis = static_cast<size_t>(i);
    if (indices[axis] == src[axis]) continue;
    ThrowInvalidInput("indices: expected ", src[axis], " on axis ", i, ", as src has, got shape ",
                      ToString(indices));
  }
  Dims expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), src.begin() + batch + depth, src.end());
  ExpectShape(s, "dst", expected);
}

void CheckGatherPlaces(const StepView& s) {
  const Dims &src = s.Shape("src"), &dst = s.Shape("dst");
  ExpectRank(s, "dst", src.size(), src.size());
  const Dims &axes = IntegersOf(s.step(), "axes"), &places = IntegersOf(s.step(), "places");
  Dims expected = src;
  size_t at = 0;
  int64_t before = -1;
  for (const int64_t axis : axes) {
    if (axis <= before || axis >= static_cast<int64_t>(src.size())) {
      ThrowInvalidInput("attribute axes: expected some of a tensor of rank ", src.size(),
                        ", rising, got ", ToString(axes));
    }
    before = axis;
    const auto index = static_cast<size_t>(axis);
    expected[index] = dst[index];
    for (int64_t i = 0; i < dst[index] && at < places.size(); ++i, ++at) {
      if (places[at] >= 0 && places[at] < src[index]) continue;
      ThrowInvalidInput("attribute places: expected some from 0 to ", src[index] - 1, " on axis ",
                        axis, ", got ", places[at]);
    }
  }
  ExpectShape(s, "dst", expected);
  int64_t needed = 0;
  for (const int64_t axis : axes) needed += dst[static_cast<size_t>(axis)];
  if (needed != static_cast<int64_t>(places.size())) {
    ThrowInvalidInput("attribute places: expected ", needed, ", got ", places.size());
  }
}

void CheckGather(const StepView& s) {
  const Dims &src = s.Shape("src"), &indices = s.Shape("indices");
  const auto axis = static_cast<std::ptrdiff_t>(AxisOf(s, src));
  Dims expected(src.begin(), src.begin() + axis);
  expected.insert(expected.end(), indices.begin(), indices.end());
  expected.insert(expected.end(), src.begin() + axis + 1, src.end());
  ExpectShape(s, "dst", expected);
}

}  // namespace mxplan
