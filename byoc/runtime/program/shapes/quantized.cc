// Types and shapes of integers with scales; see shapes/quantized.h.
#include "program/shapes/quantized.h"

#include <algorithm>

#include "base/error.h"
#include "program/step_attributes.h"

namespace mxplan {
namespace {

constexpr const char* kRoles[] = {"src_scale", "src_zero_point", "weights_scale", "dst_scale",
                                  "dst_zero_point"};

bool IsReal(const std::string& type) { return type == "float32" || type == "bfloat16"; }

const std::string& TypeOf(const StepView& s, const char* role) {
  return TypeOf(s, s.step().Find(role));
}

void Expect(const char* role, bool holds, const char* expected, const std::string& got) {
  if (!holds) ThrowInvalidInput(role, ": expected ", expected, ", got ", got);
}

// One number, or one for each of `outputs`.
void CheckNumbers(const StepView& s, const char* role, const char* type, int64_t outputs) {
  if (!s.Has(role)) return;
  const std::string& got = TypeOf(s, role);
  if (got != type) ThrowInvalidInput(role, ": expected ", type, ", got ", got);
  const Dims& shape = s.Shape(role);
  if (shape != Dims{1} && shape != Dims{outputs}) {
    ThrowInvalidInput(role, ": expected one number or ", outputs, ", got shape ", ToString(shape));
  }
}

// A side has a scale if it is of integers, and a zero point with it alone.
void CheckSide(const StepView& s, const char* role, const char* scale, const char* zero_point) {
  const std::string& type = TypeOf(s, role);
  const bool integers = IsShortInteger(type);
  Expect(role, integers || IsReal(type), "uint8, int8, float32 or bfloat16", type);
  Expect(scale, s.Has(scale) == integers, "one where the side is of integers, and only there",
         Concat(s.Has(scale) ? "one" : "none", " beside ", type));
  Expect(zero_point, integers || !s.Has(zero_point), "none beside real numbers", type);
}

int64_t OutputsOf(const StepView& s) {
  const bool channels = s.step().kind == "convolution" || s.step().kind == "deconvolution";
  return channels ? s.Shape("dst")[1] : s.Shape("dst").back();
}

}  // namespace

const std::string& TypeOf(const StepView& s, int value) {
  return s.resolved().program->values[static_cast<size_t>(value)].dtype;
}

bool IsShortInteger(const std::string& type) { return type == "uint8" || type == "int8"; }

bool IsScaleRole(const std::string& role) {
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

bool IsQuantized(const StepView& s) {
  const std::vector<Operand>& operands = s.step().operands;
  return std::any_of(operands.begin(), operands.end(),
                     [](const Operand& operand) { return IsScaleRole(operand.role); });
}

void CheckQuantizedProduct(const StepView& s) {
  if (s.Shape("dst").size() < 2) ThrowInvalidInput("dst: expected rank 2 or more");
  Expect("src", IsShortInteger(TypeOf(s, "src")), "uint8 or int8", TypeOf(s, "src"));
  Expect("weights", TypeOf(s, "weights") == "int8", "int8", TypeOf(s, "weights"));
  Expect("weights_scale", s.Has("weights_scale"), "one beside integers", "none");
  if (s.Has("bias")) Expect("bias", IsReal(TypeOf(s, "bias")), "real numbers", TypeOf(s, "bias"));
  for (const char* role : {"depthwise_weights", "depthwise_bias"}) {
    Expect(role, !s.Has(role), "none beside integers", "one");
  }
  CheckSide(s, "src", "src_scale", "src_zero_point");
  CheckSide(s, "dst", "dst_scale", "dst_zero_point");
  for (const char* role : {"src_scale", "dst_scale"}) CheckNumbers(s, role, "float32", 1);
  for (const char* role : {"src_zero_point", "dst_zero_point"}) CheckNumbers(s, role, "int32", 1);
  CheckNumbers(s, "weights_scale", "float32", OutputsOf(s));
}

void CheckQuantization(const StepView& s) {
  Expect("weights_scale", !s.Has("weights_scale"), "none", "one");
  CheckSide(s, "src", "src_scale", "src_zero_point");
  CheckSide(s, "dst", "dst_scale", "dst_zero_point");
  const Dims& shape = s.Shape("dst");
  const int64_t axis = IntegerOf(s.step(), "axis");
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
    ThrowInvalidInput("attribute axis: expected one of a tensor of rank ", shape.size(), ", got ",
                      axis);
  }
  const int64_t extent = shape[static_cast<size_t>(axis)];
  for (const char* role : {"src_scale", "dst_scale"}) CheckNumbers(s, role, "float32", extent);
  for (const char* role : {"src_zero_point", "dst_zero_point"}) {
    CheckNumbers(s, role, "int32", extent);
  }
}

void CheckDynamicQuantization(const StepView& s) {
  constexpr const char* kTypes[][2] = {{"src", "float32"},
                                       {"dst", "uint8"},
                                       {"made_scale", "float32"},
                                       {"made_zero_point", "int32"}};
  for (const auto& [role, type] : kTypes)
    Expect(role, TypeOf(s, role) == type, type, TypeOf(s, role));
  for (const char* role : {"made_scale", "made_zero_point"})
    CheckNumbers(s, role, TypeOf(s, role).c_str(), 1);
}

void CheckFewBits(const StepView& s) {
  constexpr const char* kTypes[][2] = {
      {"src", "float32"}, {"numbers", "int32"}, {"scales", "float32"}, {"dst", "float32"}};
  for (const auto& [role, type] : kTypes)
    Expect(role, TypeOf(s, role) == type, type, TypeOf(s, role));
  if (s.Has("zero_points")) {
    const std::string& type = TypeOf(s, "zero_points");
    Expect("zero_points", type == "uint8" || type == "float32", "uint8 or float32", type);
  }
  for (const PostOp& op : s.step().post_ops) {
    if (op.kind != PostOp::Kind::kBinary) continue;
    const std::string& type = TypeOf(s, op.value);
    Expect("post-op", type == "float32", "float32", type);
  }
}

}  // namespace mxplan
