// Descriptors of a program's values; see described_program.h.
#include "onednn/builder/described_program.h"

#include "base/error.h"
#include "onednn/layout.h"

namespace mxplan {
namespace {

// Empty where oneDNN has no such type or layout: a value between steps of other libraries.
dnnl::memory::desc DescOf(const ResolvedValue& value, const std::string& dtype) {
  try {
    return MakeDesc(value.dims, ParseDtype(dtype), value.tag);
  } catch (const Error&) {
    return {};
  } catch (const dnnl::error&) {
    return {};
  }
}

}  // namespace

DescribedProgram::DescribedProgram(Resolved* resolved) : resolved_(resolved) {
  for (size_t i = 0; i < resolved->values.size(); ++i) {
    const ResolvedValue& value = resolved->values[i];
    descs_.push_back(value.error.empty() ? DescOf(value, resolved->program->values[i].dtype)
                                         : dnnl::memory::desc());
  }
}

const ResolvedValue& DescribedProgram::Get(int value) const {
  const ResolvedValue& resolved = resolved_->values.at(static_cast<size_t>(value));
  if (!resolved.error.empty()) ThrowUnsupported(resolved.error);
  return resolved;
}

const dnnl::memory::desc& DescribedProgram::Desc(int value) const {
  const ResolvedValue& resolved = Get(value);
  const dnnl::memory::desc& desc = descs_[static_cast<size_t>(value)];
  if (desc.is_zero()) {
    ThrowUnsupported("value ", program().values[static_cast<size_t>(value)].name,
                     ": oneDNN has no ", program().values[static_cast<size_t>(value)].dtype,
                     " in layout ", resolved.tag);
  }
  return desc;
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
