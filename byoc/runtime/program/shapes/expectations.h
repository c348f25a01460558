// The rules' expectations, shared by several kinds, of a step's operands and attributes.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_EXPECTATIONS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_EXPECTATIONS_H_

#include <cstddef>
#include <cstdint>

#include "program/shapes/step_shapes.h"

namespace mxplan {

// The attribute axis, of a tensor of this shape; throws InvalidInput if it has none so.
int64_t AxisOf(const StepView& s, const Dims& shape);

// Throws InvalidInput unless the operand has a rank from `least` to `most`.
void ExpectRank(const StepView& s, const char* role, size_t least, size_t most);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_EXPECTATIONS_H_
