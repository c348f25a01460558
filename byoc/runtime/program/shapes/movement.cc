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

void CheckPad(const StepView& s) { CheckBox(s, "dst", "src"); }

void CheckSlice(const StepView& s) { CheckBox(s, "src", "dst"); }

void CheckStridedSlice(const StepView& s) {
  const Dims &src = s.Shape("src"), &dst = s.Shape("dst");
  ExpectRank(s, "dst", src.size(), src.size());
  const Dims& begin = IntegersOf(s.step(), "begin", src.size(), 0);
  const Dims& steps = IntegersOf(s.step(), "steps", src.size(), -INT32_MAX);
  for (size_t i = 0; i < src.size(); ++i) {
    if (dst[i] == 0) continue;
    const int64_t last = begin[i] + (dst[i] - 1) * steps[i];
    if (begin[i] >= src[i] || last < 0 || last >= src[i]) {
      ThrowInvalidInput("dst: elements ", begin[i], " to ", last, " of axis ", i,
                        ": expected some from 0 to ", src[i] - 1);
    }
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
