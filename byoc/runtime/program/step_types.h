// The element types of a step's operands, by its kind; see step_rules.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_TYPES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_TYPES_H_

#include <cstdint>

#include "program/shapes/step_shapes.h"

namespace mxplan {

enum class Types : uint8_t {
  kFloat,  // every operand is of a floating type that some library computes in; which go together,
           // the library says
  kProduct,    // as kFloat, or integers with scales (shapes/quantized.h)
  kCounted,    // as kFloat, but for counts of int32
  kPooled,     // as kFloat, or kSame for a maximum
  kQuantized,  // real numbers and integers into each other, by scales (shapes/quantized.h)
  kMeasured,   // real numbers into integers, by scales that follow (shapes/quantized.h)
  kFewBits,    // float32, but for words and zero points (shapes/quantized.h)
  kSame,       // bytes are moved: every operand is of dst's type
  kConvert,    // as kSame, or from one floating type into another
  kAlike,      // as kFloat, or kSame in a type that the library computes with
  kIndices,    // as kSame, but for indices of int32 or int64
  kCondition,  // as kSame, but for a condition of bool
  kCompared,   // every operand is of src's type, dst of bool
  kFound,      // dst has places, of int32 or int64
  kRanked,     // as kSame, but for places of int32 or int64
  kAny,        // each of its own, of which the library says more
};

// Throws InvalidInput for an operand, or one of a post-op, that is not of its type.
void CheckTypes(const StepView& s, Types types);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_TYPES_H_
