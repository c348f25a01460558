// The table of step kinds, and what builders have in common; see host/steps/builders.h.
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "host/layout.h"
#include "host/steps/builders.h"

namespace mxplan::host {
namespace {

struct Entry {
  std::string_view kind;
  void (*build)(StepBuilder* b);
  bool keeps_layout;  // of src, where dst may have any
  bool one_type;      // every operand is of dst's, which rules leave to the library
};

constexpr Entry kBuilders[] = {
    {"binary", BuildBinary, true, true},
    {"cast", BuildCast, true, false},
    {"compare", BuildCompare, true, false},
    {"concat", BuildConcat, true, false},
    {"cumulative_sum", BuildCumulativeSum, false, true},
    {"eltwise", BuildEltwise, true, true},
    {"extreme_index", BuildExtremeIndex, false, false},
    {"gather", BuildGather, false, false},
    {"gather_elements", BuildGatherElements, false, false},
    {"gather_nd", BuildGatherNd, false, false},
    {"gather_places", BuildGatherPlaces, true, false},
    {"grid_sample", BuildGridSample, true, true},
    {"put", BuildPut, true, false},
    {"ranking", BuildRanking, false, false},
    {"reduction", BuildReduction, true, true},
    {"reorder", BuildReorder, true, false},
    {"resize", BuildResize, true, true},
    {"scatter", BuildScatter, false, false},
    {"scatter_elements", BuildScatterElements, false, false},
    {"select", BuildSelect, true, false},
    {"strided_slice", BuildStridedSlice, false, false},
};

const Entry& FindEntry(const Step& step) {
  for (const Entry& entry : kBuilders) {
    if (entry.kind == step.kind) return entry;
  }
  ThrowUnsupported("the host library has no kernel of this kind");
}

struct NamedType {
  std::string_view name;
  Type type;
};

constexpr NamedType kTypes[] = {
    {"float32", Type::kF32}, {"float64", Type::kF64}, {"int8", Type::kI8},  {"uint8", Type::kU8},
    {"int32", Type::kI32},   {"int64", Type::kI64},   {"bool", Type::kBool}};

}  // namespace

StepBuilder::StepBuilder(const Step& step, Resolved* resolved) : step_(step), resolved_(resolved) {
  const Entry& entry = FindEntry(step);
  const bool keeps = entry.keeps_layout;
  auto settle = [&](int id, const std::string& tag) {
    ResolvedValue& value = resolved_->values[static_cast<size_t>(id)];
    if (!value.IsAny()) return;
    const std::string& dtype = resolved_->program->values[static_cast<size_t>(id)].dtype;
    value.tag = tag;
    value.layout = ParseLayout(value.dims, dtype, tag);
  };
  for (const Operand& operand : step.operands) {
    const ResolvedValue& value = resolved_->values[static_cast<size_t>(operand.value)];
    const int src = step.Find("src");
    const bool follows =
        keeps && operand.role == "dst" && src >= 0 && Get(src).dims.size() == value.dims.size();
    settle(operand.value, follows ? Get(src).tag : PlainTag(value.dims.size()));
  }
  for (const Operand& operand : step.operands) {
    if (entry.one_type && Dtype(operand.role.c_str()) != Dtype("dst")) {
      ThrowUnsupported(operand.role, ": expected ", Dtype("dst"), " as dst has it, got ",
                       Dtype(operand.role.c_str()));
    }
  }
  if (!step.post_ops.empty()) ThrowUnsupported("post-ops, which the host library has not");
}

int StepBuilder::Id(const char* role) const {
  const int id = step_.Find(role);
  if (id < 0) ThrowInvalidInput("no operand in role ", role);
  return id;
}

const ResolvedValue& StepBuilder::Get(int value) const {
  const ResolvedValue& resolved = resolved_->values[static_cast<size_t>(value)];
  if (!resolved.error.empty()) ThrowUnsupported(resolved.error);
  if (!resolved.IsAny() && resolved.layout.strides.size() != resolved.dims.size()) {
    ThrowUnsupported("a value whose layout ", resolved.tag, " strides do not tell");
  }
  return resolved;
}

const std::string& StepBuilder::Dtype(const char* role) const {
  return resolved_->program->values[static_cast<size_t>(Id(role))].dtype;
}

Type StepBuilder::ComputedType(const char* role) const {
  const std::string& dtype = Dtype(role);
  for (const NamedType& one : kTypes) {
    if (one.name == dtype) return one.type;
  }
  ThrowUnsupported(role, ": element type ", dtype, ", which no kernel computes with");
}

Dims StepBuilder::Strides(const char* role) const {
  const ResolvedValue& value = Get(role);
  if (IsBlocked(value.layout)) {
    ThrowUnsupported(role, ": layout ", value.tag, ", expected one without blocks");
  }
  const Dims& to = Get("dst").dims;
  const size_t missing = to.size() - value.dims.size();
  Dims strides(to.size(), 0);
  for (size_t i = missing; i < to.size(); ++i) {
    if (value.dims[i - missing] != 1) strides[i] = value.layout.strides[i - missing];
  }
  return strides;
}

std::optional<int64_t> StepBuilder::FlatElements(const std::vector<const char*>& roles) const {
  const ResolvedValue& first = Get(roles[0]);
  for (const char* role : roles) {
    const ResolvedValue& other = Get(role);
    if (other.dims != first.dims || !SamePlacement(first.layout, other.layout)) {
      return std::nullopt;
    }
  }
  return first.Bytes() / first.layout.element_bytes;
}

bool StepBuilder::HasPadding(const char* role) const {
  const ResolvedValue& value = Get(role);
  return IsPadded(value.layout, value.dims);
}

void StepBuilder::Add(const std::vector<const char*>& roles, Kernel kernel) {
  std::vector<int> values;
  for (const char* role : roles) values.push_back(Id(role));
  AddFor(values, std::move(kernel));
}

void StepBuilder::AddFor(const std::vector<int>& values, Kernel kernel) {
  std::vector<Argument> arguments;
  for (int value : values) arguments.push_back({Argument::Source::kValue, value, 0, {}});
  arguments.push_back({Argument::Source::kScratchpad, -1, 0, {}});
  executable_.stages.push_back(
      std::make_unique<KernelStage>(std::move(arguments), std::move(kernel)));
  executable_.implementation = Concat("host:", KernelsHere().isa);
}

Executable BuildStep(const Step& step, Resolved* resolved) {
  StepBuilder builder(step, resolved);
  FindEntry(step).build(&builder);
  return builder.Take();
}

}  // namespace mxplan::host
