// The region program as C++ values: what tvm_mxplan/core/program/program.py defines and codec.py
// writes.
//
// Decode accepts exactly the bytes of that codec, checks every id, count and range, and never reads
// outside the data, so the rest of the runtime may trust a Program: operands exist, aliases point
// backwards, inputs, outputs and constants are numbered without gaps, a value is the result of at
// most one step, and of one of its roles.  Whether a step's operands fit each other is left to
// step_rules.h, which has to know the symbols, and what memory must be to memory_rules.h, which has
// to know the layouts.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_PROGRAM_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mxplan {

// A dimension: a constant, a symbol, or an operator over two earlier nodes, in postfix order.  The
// last node is the result.
struct DimNode {
  enum class Code : uint8_t {
    kConstant,
    kSymbol,
    kAdd,
    kSub,
    kMul,
    kFloorDiv,
    kFloorMod,
    kMax,
    kMin
  };
  Code code = Code::kConstant;
  int64_t number = 0;  // the constant, or the symbol's index
};
using DimExpr = std::vector<DimNode>;

// Value of `expr`; throws InvalidInput on overflow or division by zero.
int64_t Evaluate(const DimExpr& expr, const std::vector<int64_t>& symbols);
bool IsConstant(const DimExpr& expr);
std::string ToString(const DimExpr& expr, const std::vector<std::string>& symbols);

enum class ValueKind : uint8_t { kInput, kOutput, kConstant, kLocal };

struct Value {
  std::string name;
  std::string dtype;
  ValueKind kind = ValueKind::kLocal;
  std::string layout;
  int64_t index = -1;     // among the inputs, outputs or constants
  int64_t state = -1;     // the state that outlives a call and is read or changed here; -1: none
  int64_t alias_of = -1;  // the earlier value whose bytes this one views
  DimExpr alias_offset;
  int64_t offset = -1;  // arena bytes; -1: not planned
  int64_t nbytes = -1;
  std::vector<DimExpr> shape;
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, bool>;

struct Operand {
  std::string role;
  int value = -1;

  bool IsResult() const {
    for (const char* result : {"dst", "last_hidden", "last_cell", "batch_mean", "batch_variance",
                               "scale_gradient", "shift_gradient", "made_scale", "made_zero_point",
                               "kept_gates", "kept_cells", "reset_gradient", "hidden_gradient",
                               "cell_gradient", "order", "joined_key", "joined_value"}) {
      if (role == result) return true;
    }
    return false;
  }
};

struct PostOp {
  enum class Kind : uint8_t { kEltwise, kBinary, kSum, kDepthwise };
  Kind kind = Kind::kEltwise;
  std::string algorithm;                        // eltwise and binary
  double alpha = 0;                             // eltwise; the scale of a sum
  double beta = 0;                              // eltwise
  int value = -1;                               // binary
  int64_t kernel = 0, stride = 0, padding = 0;  // depthwise
};

struct Step {
  std::string kind;
  std::string name;
  std::string library;  // that runs it; empty: the one whose region it is
  std::string implementation;
  int64_t scratchpad_offset = -1;
  int64_t scratchpad_bytes = -1;
  std::vector<std::string> refused;  // implementations that are wrong for it
  std::string prepared;  // what the library made for it ahead of time, in a format of its own
  std::map<std::string, Attribute> attributes;
  std::vector<Operand> operands;
  std::vector<PostOp> post_ops;

  // Value of the first operand in `role`, -1 if there is none.
  int Find(std::string_view role) const;
  // Values that it writes, in the order of its operands: dst, and what else its kind has.
  std::vector<int> Results() const;
};

struct SymbolBinding {
  std::string name;
  int64_t input = 0;  // -1: among the numbers that a call hands over beside its tensors
  int64_t axis = 0;   // of the input; which of these numbers
};

struct Program {
  std::string name;
  int64_t arena_bytes = -1;
  std::vector<SymbolBinding> symbols;
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<int> inputs, outputs, constants;  // value ids, by index
  std::vector<int> roots;                       // for each value, the one that owns its bytes

  std::vector<std::string> SymbolNames() const;
  bool IsStatic() const { return symbols.empty(); }
};

// Ids of the values that a step reads: operands, those of post-ops, and what a sum adds.
std::vector<int> ReadsOf(const Program& program, size_t step);

// Throws InvalidInput with the byte or the object at fault.
Program Decode(std::string_view data);

// One line for each value and step, for people.
std::string ToText(const Program& program);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_PROGRAM_H_
