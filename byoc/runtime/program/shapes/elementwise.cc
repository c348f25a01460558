// Shapes of steps whose results have those of their operands, broadcast or with reduced axes.
#include "base/error.h"
#include "program/shapes/expectations.h"
#include "program/shapes/step_shapes.h"
#include "program/step_attributes.h"

namespace mxplan {

void CheckBatchNormalization(const StepView& s) {
  ExpectRank(s, "src", 2, 5);
  const Dims& src = s.Shape("src");
  for (const char* role : {"mean", "variance", "scale", "shift", "batch_mean", "batch_variance",
                           "scale_gradient", "shift_gradient"}) {
    if (s.Has(role)) ExpectShape(s, role, {src[1]});
  }
  if (s.Has("gradient")) ExpectShape(s, "gradient", src);
  ExpectShape(s, "dst", src);
}

void CheckLayerNormalization(const StepView& s) {
  ExpectRank(s, "src", 2, 5);
  const Dims& src = s.Shape("src");
  for (const char* role : {"scale", "shift", "scale_gradient", "shift_gradient"}) {
    if (s.Has(role)) ExpectShape(s, role, {src.back()});
  }
  if (s.Has("gradient")) ExpectShape(s, "gradient", src);
  ExpectShape(s, "dst", src);
}

void CheckRotary(const StepView& s) {
  ExpectRank(s, "src", 2, 6);
  const Dims &src = s.Shape("src"), &tables = s.Shape("cosines");
  const int64_t width = IntegerOf(s.step(), "width");
  if (width < 2 || width % 2 != 0 || width > src.back()) {
    ThrowInvalidInput("attribute width: expected an even number from 2 to ", src.back(), ", got ",
                      width);
  }
  ExpectRank(s, "cosines", src.size(), src.size());
  Dims rows = src;
  rows.back() = tables.back() == width ? width : width / 2;
  if (tables.back() != rows.back()) {
    ThrowInvalidInput("cosines: expected ", width, " or ", width / 2, " on the last axis, got ",
                      tables.back());
  }
  ExpectBroadcast("cosines", tables, rows);
  ExpectBroadcast("sines", s.Shape("sines"), rows);
  if (s.Shape("sines").back() != rows.back()) {
    ThrowInvalidInput("sines: expected ", rows.back(), " on the last axis, got ",
                      s.Shape("sines").back());
  }
  CheckSameShape(s);
}

void CheckLrn(const StepView& s) {
  ExpectRank(s, "src", 2, 5);
  int64_t size = IntegerOf(s.step(), "size");
  if (size < 1 || size > INT32_MAX) {
    ThrowInvalidInput("attribute size: expected 1 to ", INT32_MAX, ", got ", size);
  }
  CheckSameShape(s);
}

void CheckSoftmax(const StepView& s) {
  AxisOf(s, s.Shape("src"));
  CheckSameShape(s);
}

void CheckSameShape(const StepView& s) { ExpectShape(s, "dst", s.Shape("src")); }

void CheckBinary(const StepView& s) {
  ExpectBroadcast("src", s.Shape("src"), s.Shape("dst"));
  ExpectBroadcast("src1", s.Shape("src1"), s.Shape("dst"));
}

void CheckPRelu(const StepView& s) {
  CheckSameShape(s);
  ExpectBroadcast("weights", s.Shape("weights"), s.Shape("dst"));
}

void CheckReduction(const StepView& s) { ExpectBroadcast("dst", s.Shape("dst"), s.Shape("src")); }

void CheckSelect(const StepView& s) {
  for (const char* role : {"condition", "src", "src1"}) {
    ExpectBroadcast(role, s.Shape(role), s.Shape("dst"));
  }
}

}  // namespace mxplan
