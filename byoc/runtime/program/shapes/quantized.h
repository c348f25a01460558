// The rules of integers that stand for real numbers: scale * (integer - zero point).
//
// Products of integers have src_scale and weights_scale, src_zero_point where it is not 0, and
// dst_scale and dst_zero_point where dst is of integers again.  A quantization converts between
// real numbers and integers, or between integers of other scales; a side of integers has a scale.
// Numbers behind these roles are taken when a step runs.  A dynamic quantization makes them, as
// made_scale and made_zero_point.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_QUANTIZED_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_QUANTIZED_H_

#include <string>

#include "program/shapes/step_shapes.h"

namespace mxplan {

const std::string& TypeOf(const StepView& s, int value);
// uint8 or int8.
bool IsShortInteger(const std::string& type);
// Whether a role is one of scales or zero points.
bool IsScaleRole(const std::string& role);
// Whether a step has any of these roles.
bool IsQuantized(const StepView& s);

// Throw InvalidInput with the operand that is at fault.
void CheckQuantizedProduct(const StepView& s);
void CheckQuantization(const StepView& s);
void CheckDynamicQuantization(const StepView& s);
// Likewise, of products with numbers of few bits in words, and of their post-ops.
void CheckFewBits(const StepView& s);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_SHAPES_QUANTIZED_H_
