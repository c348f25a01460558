// An operand of a step that goes along one axis, as the rows that stand along it.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_LINES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_LINES_H_

#include <cstdint>

#include "base/error.h"
#include "host/layout.h"
#include "host/steps/builders.h"

namespace mxplan::host {

// src as rows of `extent` elements, each `inner` elements behind the one before; rows begin one
// behind the other, and again behind `inner` of them.
struct Lines {
  int64_t outer = 1, extent = 1, inner = 1;
  int64_t count() const { return outer * inner; }
};

// Along the attribute `axis`; throws Unsupported where an operand has another layout than the plain
// one.
inline Lines LinesOf(const StepBuilder& b) {
  for (const Operand& operand : b.step().operands) {
    const ResolvedValue& value = b.Get(operand.value);
    if (value.tag != PlainTag(value.dims.size())) {
      ThrowUnsupported(operand.role, ": layout ", value.tag, ", expected the plain one");
    }
  }
  const Dims& src = b.Get("src").dims;
  const auto axis = static_cast<size_t>(IntegerOf(b.step(), "axis"));
  Lines lines;
  lines.extent = src[axis];
  for (size_t i = 0; i < src.size(); ++i) {
    if (i != axis) (i < axis ? lines.outer : lines.inner) *= src[i];
  }
  return lines;
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_LINES_H_
