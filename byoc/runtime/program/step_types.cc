// Types of operands; see step_types.h.
#include "program/step_types.h"

#include <string>

#include "base/error.h"
#include "program/shapes/quantized.h"
#include "program/step_attributes.h"

namespace mxplan {
namespace {

// float16 is one of the types of libraries that say so.
bool IsFloating(const StepView& s, const std::string& type) {
  return type == "float32" || type == "bfloat16" || (type == "float16" && s.limits().float16);
}

void CheckFloating(const StepView& s, const std::string& what, int value) {
  const std::string& type = TypeOf(s, value);
  if (IsFloating(s, type)) return;
  const char* known = s.limits().float16 ? "float32, bfloat16 or float16" : "float32 or bfloat16";
  ThrowInvalidInput(what, ": expected ", known, ", got ", type);
}

// The type that an operand has to be of, where it is not any floating one.
std::string ExpectedType(const StepView& s, Types types, const Operand& operand) {
  const std::string &role = operand.role, &type = TypeOf(s, operand.value);
  if (types == Types::kAny) return type;
  if (types == Types::kCounted) return "int32";
  const char* places = types == Types::kIndices  ? "indices"
                       : types == Types::kFound  ? "dst"
                       : types == Types::kRanked ? "order"
                                                 : "";
  if (role == places) return type == "int32" ? "int32" : "int64";
  if (types == Types::kFound) return type;
  if (types == Types::kCondition && role == "condition") return "bool";
  if (types == Types::kCompared) {
    return role == "dst" ? "bool" : TypeOf(s, s.step().Find("src"));
  }
  return TypeOf(s, s.step().Find("dst"));
}

// Whether an operand has to be of a floating type.
bool IsFloat(const StepView& s, Types types, const Operand& operand) {
  if (types == Types::kCounted) return operand.role != "filled" && operand.role != "ends";
  if (types != Types::kPooled) {
    return types == Types::kFloat || types == Types::kProduct;
  }
  return TextOf(s.step(), "algorithm") != "max" || !IsShortInteger(TypeOf(s, s.step().Find("src")));
}

}  // namespace

void CheckTypes(const StepView& s, Types types) {
  const Step& step = s.step();
  const bool quantized = IsQuantized(s);
  if (types == Types::kQuantized) return CheckQuantization(s);
  if (types == Types::kMeasured) return CheckDynamicQuantization(s);
  if (types == Types::kFewBits) return CheckFewBits(s);
  if (quantized) CheckQuantizedProduct(s);
  for (const Operand& operand : step.operands) {
    if (quantized) break;
    if (IsFloat(s, types, operand)) {
      CheckFloating(s, operand.role, operand.value);
      continue;
    }
    const std::string &type = TypeOf(s, operand.value), expected = ExpectedType(s, types, operand);
    const bool floating = IsFloating(s, type) && IsFloating(s, expected);
    const bool converts = types == Types::kConvert || types == Types::kAlike;
    if (type != expected && !(converts && floating)) {
      ThrowInvalidInput(operand.role, ": expected ", expected, ", got ", type);
    }
  }
  for (const PostOp& op : step.post_ops) {
    if (op.kind != PostOp::Kind::kBinary || (quantized && IsShortInteger(TypeOf(s, op.value)))) {
      continue;
    }
    CheckFloating(s, "post-op " + op.algorithm, op.value);
  }
}

}  // namespace mxplan
