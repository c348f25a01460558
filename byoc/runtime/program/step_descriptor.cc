// Facts and text of a step; see step_descriptor.h and step_text.h.
#include "program/step_descriptor.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "program/step_text.h"

namespace mxplan {
namespace {

std::string Joined(const Dims& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) text += (i ? "," : "") + std::to_string(numbers[i]);
  return text;
}

// All digits of a number, so that two texts are equal only where the numbers are.
std::string Exact(double number) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.17g", number);
  return digits;
}

std::string TextOf(const Attribute& attribute) {
  if (const auto* integer = std::get_if<int64_t>(&attribute)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&attribute)) return Exact(*real);
  if (const auto* text = std::get_if<std::string>(&attribute)) return *text;
  if (const auto* flag = std::get_if<bool>(&attribute)) return *flag ? "true" : "false";
  return Joined(std::get<std::vector<int64_t>>(attribute));
}

std::string TextOf(int value, const Resolved& resolved) {
  const ResolvedValue& known = resolved.values[static_cast<size_t>(value)];
  const Value& named = resolved.program->values[static_cast<size_t>(value)];
  const Value& root = resolved.program->values[static_cast<size_t>(known.root)];
  // Constants are packed, and so leave the library a choice that others do not.
  const char* constant = root.kind == ValueKind::kConstant ? "constant " : "";
  return Concat(constant, named.dtype, "[", Joined(known.dims), "]", named.layout);
}

std::string TextOf(const PostOp& op, const Resolved& resolved) {
  std::string parameters = Concat("(", Exact(op.alpha), ",", Exact(op.beta), ")");
  switch (op.kind) {
    case PostOp::Kind::kEltwise:
      return Concat("eltwise ", op.algorithm, parameters);
    case PostOp::Kind::kBinary:
      return Concat("binary ", op.algorithm, " ", TextOf(op.value, resolved));
    case PostOp::Kind::kSum:
      return "sum" + parameters;
    case PostOp::Kind::kDepthwise:
      return Concat("depthwise(", op.kernel, ",", op.stride, ",", op.padding, ")");
  }
  ThrowInternal("a post-op of kind ", static_cast<int>(op.kind));
}

std::string TextOf(const Step& step, const Resolved& resolved) {
  std::string text = step.kind;
  for (const auto& [name, attribute] : step.attributes) {
    // Both name an implementation of the same step, or a family of them.
    const bool filters = step.kind == "convolution" || step.kind == "deconvolution";
    if (name == "preferred" || (name == "algorithm" && filters)) continue;
    text += Concat(" ", name, "=", TextOf(attribute));
  }
  for (const Operand& operand : step.operands) {
    text += Concat(" ", operand.role, "=", TextOf(operand.value, resolved));
  }
  for (const PostOp& op : step.post_ops) text += Concat(" + ", TextOf(op, resolved));
  return text;
}

template <typename T>
T AttributeOr(const Step& step, const char* name, T missing) {
  auto found = step.attributes.find(name);
  const T* value = found == step.attributes.end() ? nullptr : std::get_if<T>(&found->second);
  return value ? *value : missing;
}

}  // namespace

bool NamesOperand(const std::string& text, const std::string& role) {
  return text.find(" " + role + "=") != std::string::npos;
}

std::string TypeOfOperand(const std::string& text, const std::string& role) {
  size_t at = text.find(" " + role + "=");
  if (at == std::string::npos) return "";
  at += role.size() + 2;
  const std::string constant = "constant ";
  if (text.compare(at, constant.size(), constant) == 0) at += constant.size();
  return text.substr(at, text.find('[', at) - at);
}

StepDescriptor DescribeStep(const Step& step, const Resolved& resolved) {
  StepDescriptor descriptor;
  descriptor.text = TextOf(step, resolved);
  descriptor.kind = step.kind;
  descriptor.algorithm = AttributeOr<std::string>(step, "algorithm", "");
  bool convolution = step.kind == "convolution" || step.kind == "deconvolution";
  if (convolution) {
    descriptor.groups = std::max<int64_t>(1, AttributeOr<int64_t>(step, "groups", 1));
  }
  auto read = [&](const char* role, Dims* dims, std::string* layout) {
    int value = step.Find(role);
    if (value < 0) return;
    *dims = resolved.values[static_cast<size_t>(value)].dims;
    *layout = resolved.program->values[static_cast<size_t>(value)].layout;
  };
  read("src", &descriptor.src, &descriptor.src_layout);
  read("weights", &descriptor.weights, &descriptor.weights_layout);
  read("dst", &descriptor.dst, &descriptor.dst_layout);
  descriptor.kernel = AttributeOr<Dims>(step, "kernel", {});
  descriptor.strides = AttributeOr<Dims>(step, "strides", {});
  descriptor.dilation = AttributeOr<Dims>(step, "dilation", {});
  descriptor.padding = AttributeOr<Dims>(step, "padding", {});
  if (convolution) {
    size_t axes = std::min(descriptor.strides.size(), descriptor.weights.size());
    descriptor.kernel.assign(descriptor.weights.end() - static_cast<std::ptrdiff_t>(axes),
                             descriptor.weights.end());
  }
  descriptor.has_bias = step.Find("bias") >= 0;
  descriptor.post_ops = step.post_ops;
  return descriptor;
}

}  // namespace mxplan
