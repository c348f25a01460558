// Shapes of steps that go along one axis: what stands where in an order, and sums up to a place.
#include "base/error.h"
#include "program/shapes/expectations.h"
#include "program/shapes/step_shapes.h"
#include "program/step_attributes.h"

namespace mxplan {

void CheckCumulativeSum(const StepView& s) {
  AxisOf(s, s.Shape("src"));
  ExpectShape(s, "dst", s.Shape("src"));
}

void CheckExtremeIndex(const StepView& s) {
  const Dims& src = s.Shape("src");
  const auto axis = static_cast<size_t>(AxisOf(s, src));
  Dims expected = src;
  expected[axis] = 1;
  ExpectShape(s, "dst", expected);
  if (src[axis] == 0) ThrowInvalidInput("src: expected elements on axis ", axis, ", got none");
}

void CheckRanking(const StepView& s) {
  const Dims &src = s.Shape("src"), &dst = s.Shape("dst");
  const auto axis = static_cast<size_t>(AxisOf(s, src));
  Dims expected = src;
  if (dst.size() == src.size() && dst[axis] <= src[axis]) expected[axis] = dst[axis];
  ExpectShape(s, "dst", expected);
  if (s.Has("order")) ExpectShape(s, "order", expected);
}

}  // namespace mxplan
