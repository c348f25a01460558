// The places of values' bytes; see value_bytes.h.
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

}  // namespace mxplan
