// Descriptors of a program's values; see described_program.h.
#include "onednn/builder/described_program.h"

#include "base/error.h"
#include "onednn/layout.h"

namespace mxplan {

DescribedProgram::DescribedProgram(Resolved* resolved) : resolved_(resolved) {
  for (size_t i = 0; i < resolved->values.size(); ++i) {
    const ResolvedValue& value = resolved->values[i];
    bool known = value.error.empty();
    descs_.push_back(
        known ? MakeDesc(value.dims, ParseDtype(resolved->program->values[i].dtype), value.tag)
              : dnnl::memory::desc());
  }
}

const ResolvedValue& DescribedProgram::Get(int value) const {
  const ResolvedValue& resolved = resolved_->values.at(static_cast<size_t>(value));
  if (!resolved.error.empty()) ThrowUnsupported(resolved.error);
  return resolved;
}

const dnnl::memory::desc& DescribedProgram::Desc(int value) const {
  Get(value);
  return descs_[static_cast<size_t>(value)];
}

bool DescribedProgram::IsConstant(int value) const {
  auto root = static_cast<size_t>(resolved_->values[static_cast<size_t>(value)].root);
  return program().values[root].kind == ValueKind::kConstant;
}

void DescribedProgram::Decide(int value, const dnnl::memory::desc& desc) {
  descs_[static_cast<size_t>(value)] = desc;
  ResolvedValue& resolved = resolved_->values[static_cast<size_t>(value)];
  resolved.layout = ToPhysical(desc);
  resolved.tag = TagOf(desc);
}

}  // namespace mxplan
