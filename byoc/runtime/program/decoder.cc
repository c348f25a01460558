// Bytes -> Program, the inverse of tvm_mxplan/core/program/codec.py; see program.h for what it
// guarantees.
//
// Two stages: ProgramReader parses the bytes; Check* then hold the program's own rules (ids in
// range, aliases backwards, numbering without gaps).
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/reader.h"
#include "program/program.h"

namespace mxplan {
namespace {

constexpr uint32_t kVersion = 7;
constexpr int kMaxExpressionDepth = 64;
constexpr size_t kMaxRank = 12;
constexpr size_t kMaxPostOps = 32;
constexpr size_t kMaxSymbols = 64;

class ProgramReader : private ByteReader {
 public:
  explicit ProgramReader(std::string_view data) : ByteReader(data, "region program") {}

  Program ReadProgram() {
    Header("MXPR", kVersion);
    Program program;
    program.name = String();
    program.arena_bytes = Number<int64_t>();
    size_t symbols = Count(20);
    if (symbols > kMaxSymbols) ThrowInvalidInput(symbols, " symbols, at most ", kMaxSymbols);
    for (size_t i = 0; i < symbols; ++i) program.symbols.push_back(ReadSymbol());
    symbols_ = symbols;
    for (size_t i = 0, n = Count(62); i < n; ++i) program.values.push_back(ReadValue());
    for (size_t i = 0, n = Count(44); i < n; ++i) program.steps.push_back(ReadStep());
    End();
    return program;
  }

 private:
  std::string String() { return Text(Number<uint32_t>()); }

  // A value id; its range is checked once all values are known.
  int Id() {
    auto id = Number<int64_t>();
    return id < 0 || id > INT32_MAX ? -1 : static_cast<int>(id);
  }

  void ReadDim(DimExpr* expr, int depth = 0) {
    if (depth > kMaxExpressionDepth) {
      ThrowInvalidInput("a dimension's expression is nested too deeply");
    }
    auto code = Number<uint8_t>();
    DimNode node;
    if (code > static_cast<uint8_t>(DimNode::Code::kMin)) {
      ThrowInvalidInput("code ", int{code}, " at byte ", offset() - 1, " is no dimension");
    }
    node.code = static_cast<DimNode::Code>(code);
    if (node.code == DimNode::Code::kConstant) {
      node.number = Number<int64_t>();
    } else if (node.code == DimNode::Code::kSymbol) {
      node.number = Number<uint32_t>();
      if (static_cast<size_t>(node.number) >= symbols_) {
        ThrowInvalidInput("symbol ", node.number, " of ", symbols_);
      }
    } else {
      ReadDim(expr, depth + 1);
      ReadDim(expr, depth + 1);
    }
    expr->push_back(node);
  }

  SymbolBinding ReadSymbol() {
    SymbolBinding binding;
    binding.name = String();
    binding.input = Number<int64_t>();
    binding.axis = Number<int64_t>();
    return binding;
  }

  Value ReadValue() {
    Value value;
    value.name = String();
    value.dtype = String();
    auto kind = Number<uint8_t>();
    if (kind > static_cast<uint8_t>(ValueKind::kLocal)) {
      ThrowInvalidInput("code ", int{kind}, " at byte ", offset() - 1, " is no kind of value");
    }
    value.kind = static_cast<ValueKind>(kind);
    value.layout = String();
    value.index = Number<int64_t>();
    value.state = Number<int64_t>();
    value.alias_of = Number<int64_t>();
    ReadDim(&value.alias_offset);
    value.offset = Number<int64_t>();
    value.nbytes = Number<int64_t>();
    size_t rank = Count(5);
    if (rank > kMaxRank) ThrowInvalidInput("value ", value.name, " has rank ", rank);
    value.shape.resize(rank);
    for (DimExpr& dim : value.shape) ReadDim(&dim);
    return value;
  }

  Attribute ReadAttribute() {
    auto code = Number<uint8_t>();
    switch (code) {
      case 0:
        return Number<int64_t>();
      case 1:
        return Real();
      case 2:
        return String();
      case 3: {
        std::vector<int64_t> numbers(Count(8));
        for (int64_t& number : numbers) number = Number<int64_t>();
        return numbers;
      }
      case 4:
        return Number<uint8_t>() != 0;
      default:
        ThrowInvalidInput("attribute type ", int{code}, " at byte ", offset() - 1);
    }
  }

  PostOp ReadPostOp() {
    PostOp op;
    auto code = Number<uint8_t>();
    switch (code) {
      case 0:
        op.kind = PostOp::Kind::kEltwise;
        op.algorithm = String();
        op.alpha = Real();
        op.beta = Real();
        break;
      case 1:
        op.kind = PostOp::Kind::kBinary;
        op.algorithm = String();
        op.value = Id();
        break;
      case 2:
        op.kind = PostOp::Kind::kSum;
        op.alpha = Real();
        break;
      case 3:
        op.kind = PostOp::Kind::kDepthwise;
        op.kernel = Number<int64_t>();
        op.stride = Number<int64_t>();
        op.padding = Number<int64_t>();
        if (std::min(op.kernel, op.stride) < 1 || op.padding < 0 ||
            std::max({op.kernel, op.stride, op.padding}) > INT32_MAX) {
          ThrowInvalidInput("depthwise post-op with kernel ", op.kernel, ", stride ", op.stride,
                            ", padding ", op.padding);
        }
        break;
      default:
        ThrowInvalidInput("post-op type ", int{code}, " at byte ", offset() - 1);
    }
    return op;
  }

  Step ReadStep() {
    Step step;
    step.kind = String();
    step.name = String();
    step.library = String();
    step.implementation = String();
    step.scratchpad_offset = Number<int64_t>();
    step.scratchpad_bytes = Number<int64_t>();
    for (size_t i = 0, n = Count(4); i < n; ++i) step.refused.push_back(String());
    step.prepared = std::string(Take(Number<uint32_t>()));
    for (size_t i = 0, n = Count(6); i < n; ++i) {
      std::string name = String();
      step.attributes[name] = ReadAttribute();
    }
    for (size_t i = 0, n = Count(12); i < n; ++i) {
      std::string role = String();
      int value = Id();
      step.operands.push_back({std::move(role), value});
    }
    size_t post_ops = Count(9);
    if (post_ops > kMaxPostOps)
      ThrowInvalidInput("step ", step.name, " has ", post_ops, " post-ops");
    for (size_t i = 0; i < post_ops; ++i) step.post_ops.push_back(ReadPostOp());
    return step;
  }

  size_t symbols_ = 0;
};

// Numbers the values of one kind; throws unless the indices are 0, 1, 2, ...
std::vector<int> CheckNumbering(const Program& program, ValueKind kind, const char* what) {
  std::vector<int> ids;
  for (const Value& value : program.values) {
    if (value.kind == kind) ids.push_back(-1);
  }
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (value.kind != kind) continue;
    bool in_range = value.index >= 0 && static_cast<size_t>(value.index) < ids.size();
    if (!in_range || ids[value.index] >= 0) {
      ThrowInvalidInput("value ", value.name, ": ", what, " number ", value.index, " of ",
                        ids.size(), " is out of range or taken");
    }
    ids[value.index] = static_cast<int>(i);
  }
  return ids;
}

// Returns the root of every value.
std::vector<int> CheckValues(const Program& program) {
  std::vector<int> roots;
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (value.alias_of < -1 || value.alias_of >= static_cast<int64_t>(i)) {
      ThrowInvalidInput("value ", value.name, " (", i, ") is an alias of ", value.alias_of,
                        ", which is no earlier value");
    }
    if (value.alias_of >= 0 && value.kind != ValueKind::kLocal) {
      ThrowInvalidInput("value ", value.name, " is an alias but not a local");
    }
    if (value.nbytes < -1) ThrowInvalidInput("value ", value.name, " has ", value.nbytes, " bytes");
    if (value.offset < -1) ThrowInvalidInput("value ", value.name, " has offset ", value.offset);
    roots.push_back(value.alias_of < 0 ? static_cast<int>(i) : roots[value.alias_of]);
  }
  return roots;
}

bool SameDims(const std::vector<DimExpr>& a, const std::vector<DimExpr>& b) {
  auto same_node = [](const DimNode& x, const DimNode& y) {
    return x.code == y.code && x.number == y.number;
  };
  auto same = [&](const DimExpr& x, const DimExpr& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_node);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

// Values of one state stand alike, since an update joins them number by number.
void CheckStates(const Program& program) {
  std::map<int64_t, const Value*> states;
  std::set<int64_t> changed;
  for (const Value& value : program.values) {
    if (value.state == -1) continue;
    bool crosses = value.kind == ValueKind::kInput || value.kind == ValueKind::kOutput;
    if (value.state < -1 || !crosses) {
      ThrowInvalidInput("value ", value.name, " is state ", value.state,
                        ", but no input or output, or below 0");
    }
    if (value.kind == ValueKind::kOutput && !changed.insert(value.state).second) {
      ThrowInvalidInput("value ", value.name, " is the second output of state ", value.state);
    }
    const Value& first = *states.emplace(value.state, &value).first->second;
    if (value.dtype != first.dtype || value.layout != first.layout ||
        !SameDims(value.shape, first.shape)) {
      ThrowInvalidInput("values ", first.name, " and ", value.name, " are state ", value.state,
                        ", but differ in shape, type or layout");
    }
  }
}

void CheckSteps(const Program& program) {
  std::vector<bool> results(program.values.size(), false);
  auto known = [&program](int id) {
    return id >= 0 && static_cast<size_t>(id) < program.values.size();
  };
  for (const Step& step : program.steps) {
    int written = 0;
    for (const Operand& operand : step.operands) {
      if (!known(operand.value)) {
        ThrowInvalidInput("step ", step.name, ": operand ", operand.role, " is no value");
      }
      if (!operand.IsResult()) continue;
      if (operand.role == "dst") ++written;
      if (results[static_cast<size_t>(operand.value)]) {
        ThrowInvalidInput("step ", step.name, ": ", operand.role, " ",
                          program.values[operand.value].name, " is the result of an earlier step");
      }
      results[static_cast<size_t>(operand.value)] = true;
      ValueKind kind = program.values[program.roots[operand.value]].kind;
      if (kind == ValueKind::kConstant || kind == ValueKind::kInput) {
        ThrowInvalidInput("step ", step.name, " writes into an input or a constant");
      }
    }
    if (written != 1) ThrowInvalidInput("step ", step.name, " has ", written, " dst operands");
    for (const PostOp& op : step.post_ops) {
      if (op.kind == PostOp::Kind::kBinary && !known(op.value)) {
        ThrowInvalidInput("step ", step.name, ": a post-op's operand is no value");
      }
    }
    if (step.scratchpad_offset < -1 || step.scratchpad_bytes < -1) {
      ThrowInvalidInput("step ", step.name, " has a scratchpad of ", step.scratchpad_bytes,
                        " bytes at ", step.scratchpad_offset);
    }
  }
}

void CheckSymbols(const Program& program) {
  std::set<std::string> names;
  for (const SymbolBinding& binding : program.symbols) {
    if (binding.input == -1 && binding.axis >= 0) continue;  // counted when a call comes
    bool input = binding.input >= 0 && static_cast<size_t>(binding.input) < program.inputs.size();
    if (!input || binding.axis < 0 ||
        static_cast<size_t>(binding.axis) >=
            program.values[program.inputs[binding.input]].shape.size()) {
      ThrowInvalidInput("symbol ", binding.name, " is bound to axis ", binding.axis, " of input ",
                        binding.input, ", which does not exist");
    }
    if (!names.insert(binding.name).second) {
      ThrowInvalidInput("symbol ", binding.name, " is bound twice");
    }
  }
}

}  // namespace

Program Decode(std::string_view data) {
  Program program = ProgramReader(data).ReadProgram();
  if (program.arena_bytes < -1) {
    ThrowInvalidInput("region ", program.name, " has an arena of ", program.arena_bytes, " bytes");
  }
  program.inputs = CheckNumbering(program, ValueKind::kInput, "input");
  program.outputs = CheckNumbering(program, ValueKind::kOutput, "output");
  program.constants = CheckNumbering(program, ValueKind::kConstant, "constant");
  program.roots = CheckValues(program);
  CheckStates(program);
  CheckSteps(program);
  CheckSymbols(program);
  return program;
}

}  // namespace mxplan
