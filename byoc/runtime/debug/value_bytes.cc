// Where the bytes of values stand; see value_bytes.h.
#include "debug/value_bytes.h"

#include "region/specialization.h"

namespace mxplan {

Span BytesOf(const Specialization& owner, char* arena, const std::vector<void*>& io, int value) {
  const Program& program = owner.program();
  const ResolvedValue& resolved = owner.resolved().values[static_cast<size_t>(value)];
  const Value& root = program.values[static_cast<size_t>(resolved.root)];
  char* base = nullptr;
  if (root.kind == ValueKind::kLocal) {
    base = arena + owner.ValueOffset(resolved.root);
  } else if (root.kind == ValueKind::kConstant) {
    base = const_cast<char*>(owner.weights().Plain(static_cast<size_t>(root.index)));
  } else {
    size_t skip = root.kind == ValueKind::kOutput ? program.inputs.size() : 0;
    base = static_cast<char*>(io[skip + static_cast<size_t>(root.index)]);
  }
  base += resolved.offset;
  return {base, base + resolved.Bytes()};
}

std::vector<int> ReadsOf(const Program& program, size_t step) {
  const Step& what = program.steps[step];
  std::vector<int> reads;
  for (const Operand& operand : what.operands) {
    if (operand.role != "dst") reads.push_back(operand.value);
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
