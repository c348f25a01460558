// See expectations.h and step_shapes.h.
#include "program/shapes/expectations.h"

#include "base/error.h"
#include "program/step_attributes.h"

namespace mxplan {

const Dims& StepView::Shape(const char* role) const {
  int id = step_.Find(role);
  if (id < 0) ThrowInvalidInput("no operand in role ", role);
  return ShapeOf(id);
}

std::string ToString(const Dims& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += Concat(i ? ", " : "", shape[i]);
  return text + ")";
}

void ExpectShape(const StepView& s, const char* role, const Dims& expected) {
  const Dims& shape = s.Shape(role);
  if (shape != expected) {
    ThrowInvalidInput(role, ": expected shape ", ToString(expected), ", got ", ToString(shape));
  }
}

void ExpectBroadcast(const std::string& what, const Dims& shape, const Dims& to) {
  bool fits = shape.size() == to.size();
  for (size_t i = 0; fits && i < to.size(); ++i) fits = shape[i] == to[i] || shape[i] == 1;
  if (!fits) {
    ThrowInvalidInput(what, ": expected a shape that is broadcast to ", ToString(to), ", got ",
                      ToString(shape));
  }
}

int64_t AxisOf(const StepView& s, const Dims& shape) {
  int64_t axis = IntegerOf(s.step(), "axis");
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
    ThrowInvalidInput("attribute axis: expected one of a tensor of rank ", shape.size(), ", got ",
                      axis);
  }
  return axis;
}

void ExpectRank(const StepView& s, const char* role, size_t least, size_t most) {
  size_t rank = s.Shape(role).size();
  if (rank < least || rank > most) {
    ThrowInvalidInput(role, ": expected rank ", least, " to ", most, ", got shape ",
                      ToString(s.Shape(role)));
  }
}

}  // namespace mxplan
