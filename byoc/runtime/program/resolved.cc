// Shapes, layouts and alias offsets for one assignment of the symbols; see resolved.h.
#include "program/resolved.h"

#include "base/error.h"

namespace mxplan {

Resolved Resolve(const Program& program, const std::vector<int64_t>& symbols,
                 const LayoutSource& layouts) {
  Resolved resolved;
  resolved.program = &program;
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    ResolvedValue result;
    for (const DimExpr& dim : value.shape) {
      result.dims.push_back(Evaluate(dim, symbols));
      if (result.dims.back() < 0) {
        ThrowInvalidInput("value ", value.name, ": dimension ", result.dims.size() - 1, " is ",
                          result.dims.back());
      }
    }
    result.tag = value.layout;
    try {
      result.layout = layouts.LayoutOf(result.dims, value.dtype, value.layout);
    } catch (const std::exception& error) {
      result.error = Concat("value ", value.name, ": ", error.what());
    }
    result.root = program.roots[i];
    if (value.alias_of >= 0) {
      int64_t offset = Evaluate(value.alias_offset, symbols);
      int64_t base = resolved.values[value.alias_of].offset;
      if (offset < 0 || __builtin_add_overflow(base, offset, &result.offset)) {
        ThrowInvalidInput("value ", value.name, " is an alias at byte ", offset);
      }
    }
    resolved.values.push_back(std::move(result));
  }
  return resolved;
}

void CheckPlaceable(const Resolved& resolved) {
  for (size_t i = 0; i < resolved.values.size(); ++i) {
    const ResolvedValue& value = resolved.values[i];
    const std::string& name = resolved.program->values[i].name;
    if (!value.error.empty()) ThrowUnsupported(value.error);
    if (value.IsAny()) ThrowInvalidInput("value ", name, ": layout any is for queries only");
    const ResolvedValue& root = resolved.values[value.root];
    if (value.offset > root.Bytes() - value.Bytes()) {
      ThrowInvalidInput("value ", name, " views ", value.Bytes(), " bytes from byte ", value.offset,
                        " on of ", resolved.program->values[value.root].name, ", which has ",
                        root.Bytes());
    }
  }
}

}  // namespace mxplan
