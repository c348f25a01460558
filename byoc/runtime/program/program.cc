// Dimension expressions, look-ups and the readable listing of a region program; see program.h.
#include "program/program.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/integers.h"

namespace mxplan {
namespace {

using Code = DimNode::Code;

int64_t Apply(Code code, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (code) {
    case Code::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Code::kSub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Code::kMul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Code::kFloorDiv:
    case Code::kFloorMod:
      if (b == 0) ThrowInvalidInput("a dimension divides ", a, " by zero");
      overflow = b == -1 && a == INT64_MIN;
      if (!overflow) result = code == Code::kFloorDiv ? FloorDiv(a, b) : FloorMod(a, b);
      break;
    case Code::kMax:
      return std::max(a, b);
    case Code::kMin:
      return std::min(a, b);
    default:
      ThrowInternal("not an operator");
  }
  if (overflow) ThrowInvalidInput("a dimension's expression overflows 64 bits");
  return result;
}

const char* KindName(ValueKind kind) {
  constexpr std::array<const char*, 4> kNames = {"input", "output", "constant", "local"};
  return kNames.at(static_cast<size_t>(kind));
}

std::string ToString(const Attribute& attribute) {
  struct Printer {
    std::string operator()(int64_t v) const { return Concat(v); }
    std::string operator()(double v) const { return Concat(v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(const std::vector<int64_t>& v) const {
      std::string text = "(";
      for (size_t i = 0; i < v.size(); ++i) text += Concat(i ? ", " : "", v[i]);
      return text + ")";
    }
  };
  return std::visit(Printer(), attribute);
}

std::string ToString(const PostOp& op) {
  switch (op.kind) {
    case PostOp::Kind::kEltwise:
      return Concat(op.algorithm, "(", op.alpha, ", ", op.beta, ")");
    case PostOp::Kind::kBinary:
      return Concat(op.algorithm, "(v", op.value, ")");
    case PostOp::Kind::kSum:
      return Concat("sum(", op.alpha, ")");
    default:
      return Concat("depthwise(", op.kernel, ", ", op.stride, ", ", op.padding, ")");
  }
}

std::string ValueLine(const Program& program, size_t id, const std::vector<std::string>& symbols) {
  const Value& value = program.values[id];
  std::string line = Concat("  v", id, " ", KindName(value.kind));
  if (value.index >= 0) line += Concat(value.index);
  line += Concat(" ", value.dtype, "[");
  for (size_t i = 0; i < value.shape.size(); ++i) {
    line += Concat(i ? ", " : "", ToString(value.shape[i], symbols));
  }
  line += Concat("] ", value.layout, " ", value.name);
  if (value.state >= 0) line += Concat(" state ", value.state);
  if (value.alias_of >= 0) {
    line += Concat(" = v", value.alias_of, " + ", ToString(value.alias_offset, symbols));
  }
  if (value.offset >= 0) line += Concat(" @", value.offset);
  if (value.nbytes >= 0) line += Concat(" (", value.nbytes, " bytes)");
  return line;
}

std::string StepLine(const Step& step) {
  std::string line = Concat("  ", step.kind, " ", step.name, " {");
  for (size_t i = 0; i < step.operands.size(); ++i) {
    line += Concat(i ? ", " : "", step.operands[i].role, ": v", step.operands[i].value);
  }
  line += "}";
  for (const auto& [name, attribute] : step.attributes) {
    line += Concat(" ", name, "=", ToString(attribute));
  }
  for (const PostOp& op : step.post_ops) line += " + " + ToString(op);
  if (!step.implementation.empty()) line += Concat(" [", step.implementation, "]");
  return line;
}

}  // namespace

int64_t Evaluate(const DimExpr& expr, const std::vector<int64_t>& symbols) {
  if (expr.size() == 1 && expr[0].code == Code::kConstant) return expr[0].number;
  std::vector<int64_t> stack;
  for (const DimNode& node : expr) {
    if (node.code == Code::kConstant) {
      stack.push_back(node.number);
    } else if (node.code == Code::kSymbol) {
      stack.push_back(symbols.at(static_cast<size_t>(node.number)));
    } else {
      int64_t right = stack.back();
      stack.pop_back();
      stack.back() = Apply(node.code, stack.back(), right);
    }
  }
  return stack.back();
}

bool IsConstant(const DimExpr& expr) {
  return std::none_of(expr.begin(), expr.end(),
                      [](const DimNode& node) { return node.code == Code::kSymbol; });
}

std::string ToString(const DimExpr& expr, const std::vector<std::string>& symbols) {
  constexpr std::array<const char*, 9> kOperators = {"",     "",    " + ", " - ", " * ",
                                                     " // ", " % ", "max", "min"};
  std::vector<std::string> stack;
  for (const DimNode& node : expr) {
    if (node.code == Code::kConstant) {
      stack.push_back(Concat(node.number));
    } else if (node.code == Code::kSymbol) {
      stack.push_back(symbols.at(static_cast<size_t>(node.number)));
    } else {
      std::string right = stack.back();
      stack.pop_back();
      const char* name = kOperators.at(static_cast<size_t>(node.code));
      bool call = node.code == Code::kMax || node.code == Code::kMin;
      stack.back() = call ? Concat(name, "(", stack.back(), ", ", right, ")")
                          : Concat("(", stack.back(), name, right, ")");
    }
  }
  return stack.empty() ? "" : stack.back();
}

int Step::Find(std::string_view role) const {
  for (const Operand& operand : operands) {
    if (operand.role == role) return operand.value;
  }
  return -1;
}

std::vector<int> Step::Results() const {
  std::vector<int> results;
  for (const Operand& operand : operands) {
    if (operand.IsResult()) results.push_back(operand.value);
  }
  return results;
}

std::vector<std::string> Program::SymbolNames() const {
  std::vector<std::string> names;
  for (const SymbolBinding& binding : symbols) names.push_back(binding.name);
  return names;
}

std::string ToText(const Program& program) {
  std::vector<std::string> symbols = program.SymbolNames();
  std::string text = Concat("region ", program.name, " arena_bytes=", program.arena_bytes, "\n");
  for (const SymbolBinding& binding : program.symbols) {
    text += Concat("symbol ", binding.name, " = ");
    text += binding.input < 0 ? Concat("number ", binding.axis, "\n")
                              : Concat("input ", binding.input, " axis ", binding.axis, "\n");
  }
  text += "values\n";
  for (size_t i = 0; i < program.values.size(); ++i) text += ValueLine(program, i, symbols) + "\n";
  text += "steps\n";
  for (const Step& step : program.steps) text += StepLine(step) + "\n";
  return text;
}

std::vector<int> ReadsOf(const Program& program, size_t step) {
  const Step& what = program.steps[step];
  std::vector<int> reads;
  for (const Operand& operand : what.operands) {
    if (!operand.IsResult()) reads.push_back(operand.value);
  }
  for (const PostOp& op : what.post_ops) {
    if (op.kind == PostOp::Kind::kBinary) reads.push_back(op.value);
    if (op.kind == PostOp::Kind::kSum) {
      int64_t added = program.values[static_cast<size_t>(what.Find("dst"))].alias_of;
      if (added >= 0) reads.push_back(static_cast<int>(added));
    }
  }
  return reads;
}

}  // namespace mxplan
