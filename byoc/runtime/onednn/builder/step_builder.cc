// The common part of all builders: operands, attributes, post-ops, argument lists; see
// onednn/builder/step_builder.h.
#include "onednn/builder/step_builder.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "onednn/algorithms.h"
#include "onednn/engine.h"
#include "onednn/packing/packed_form.h"

namespace mxplan {
namespace {

using dnnl::memory;

class PrimitiveStage final : public MemoryStage {
 public:
  PrimitiveStage(PrimitivePointer made, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), made_(std::move(made)) {}

  void Execute(dnnl_stream_t stream, const std::vector<dnnl_exec_arg_t>& memories) const override {
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(made_->primitive.get(), stream, static_cast<int>(memories.size()),
                               memories.data()),
        "could not execute a primitive");
  }

 private:
  PrimitivePointer made_;
};

std::string Implementation(const dnnl::primitive_desc_base& pd) { return pd.impl_info_str(); }

}  // namespace

int StepBuilder::Id(const char* role) const {
  int id = step_.Find(role);
  if (id < 0) ThrowInvalidInput("no operand in role ", role);
  return id;
}

memory::desc StepBuilder::Desc(const Dims& dims, const char* role) const {
  const std::string& tag = program_->program().values[Id(role)].layout;
  return MakeDesc(dims, Desc(role).get_data_type(), tag);
}

bool StepBuilder::HasPostOp(PostOp::Kind kind) const {
  return std::any_of(step_.post_ops.begin(), step_.post_ops.end(),
                     [kind](const PostOp& op) { return op.kind == kind; });
}

void StepBuilder::Prefer(const std::string& implementation) {
  may_prefer_ = true;
  choice_.preferred = implementation;
}

bool StepBuilder::Refuses(const std::string& implementation) {
  return !MayRun(choice_, implementation, &executable_.refused);
}

void StepBuilder::ThrowRefused() { ThrowAllRefused(executable_.refused); }

void StepBuilder::NoteRefused(const std::vector<RefusedImplementation>& refused) {
  for (const RefusedImplementation& one : refused) {
    MayRun(choice_, one.implementation, &executable_.refused);
  }
}

void StepBuilder::OfferAlternative(const std::string& implementation) {
  if (!lists_alternatives_ || RefusalOf(choice_.refusals, implementation)) return;
  executable_.alternatives.push_back(implementation);
}

void StepBuilder::ListAlternatives(dnnl::primitive_desc first) {
  std::set<std::string> seen;
  do {
    std::string name = first.impl_info_str();
    if (RefusalOf(choice_.refusals, name) || !seen.insert(name).second) continue;
    bool is_first_choice = seen.size() == 1;
    if (!is_first_choice && name.rfind("ref", 0) != 0) executable_.alternatives.push_back(name);
  } while (first.next_impl());
}

bool StepBuilder::KeepsWhole() {
  const Refusal* refusal = RefusalOfWhole(choice_.refusals, executable_.implementation);
  if (!refusal) return true;
  Executable fresh;
  fresh.refused = std::move(executable_.refused);
  fresh.refused.push_back({executable_.implementation, refusal->reason});
  executable_ = std::move(fresh);
  return false;
}

Executable StepBuilder::Take() {
  // A single stage was asked about when it was chosen.
  const std::string& name = executable_.implementation;
  const Refusal* refusal = RefusalOfWhole(choice_.refusals, name);
  if (refusal && executable_.stages.size() > 1) ThrowAllRefused({{name, refusal->reason}});
  return std::move(executable_);
}

memory::desc StepBuilder::Fixed(int value) {
  const ResolvedValue& resolved = Get(value);
  if (resolved.IsAny()) {
    program_->Decide(value, MakeDesc(resolved.dims, Desc(value).get_data_type(),
                                     PlainTag(resolved.dims.size())));
  }
  return Desc(value);
}

memory::desc StepBuilder::FixedLike(const char* role, const memory::desc& other) {
  const ResolvedValue& resolved = Get(role);
  std::string tag = TagOf(other);
  if (resolved.IsAny() && tag != "opaque" && resolved.dims.size() == other.get_dims().size()) {
    program_->Decide(Id(role), MakeDesc(resolved.dims, Desc(role).get_data_type(), tag));
  }
  return Fixed(role);
}

bool StepBuilder::IsConstant(const char* role) const { return program_->IsConstant(Id(role)); }

memory::desc StepBuilder::Weights(const char* role) const {
  memory::desc desc = Desc(role);
  if (!IsConstant(role)) return desc;
  return MakeDesc(desc.get_dims(), desc.get_data_type(), "any");
}

memory::desc StepBuilder::AnyWeights(const char* role) const {
  memory::desc desc = Desc(role);
  return MakeDesc(desc.get_dims(), desc.get_data_type(), "any");
}

dnnl::primitive_attr StepBuilder::Attr(PrimitiveKey* key) const {
  dnnl::post_ops post_ops;
  for (const PostOp& op : post_ops_) {
    auto alpha = static_cast<float>(op.alpha), beta = static_cast<float>(op.beta);
    key->Put(op.kind);
    switch (op.kind) {
      case PostOp::Kind::kEltwise:
        post_ops.append_eltwise(EltwiseAlgorithm(op.algorithm), alpha, beta);
        key->Put(EltwiseAlgorithm(op.algorithm));
        key->Put(alpha);
        key->Put(beta);
        break;
      case PostOp::Kind::kBinary:
        post_ops.append_binary(BinaryAlgorithm(op.algorithm), PostOpDesc(op.value));
        key->Put(BinaryAlgorithm(op.algorithm));
        key->Put(PostOpDesc(op.value));
        break;
      case PostOp::Kind::kSum:
        post_ops.append_sum(alpha);
        key->Put(alpha);
        break;
      case PostOp::Kind::kDepthwise: {
        auto type = [&](const char* role) { return Desc(role).get_data_type(); };
        auto bias = Has("depthwise_bias") ? type("depthwise_bias") : memory::data_type::undef;
        auto weights = type("depthwise_weights"), dst = type("dst");
        post_ops.append_dw(weights, bias, dst, op.kernel, op.stride, op.padding);
        key->Put(weights);
        key->Put(bias);
        key->Put(dst);
        key->Put(Dims{op.kernel, op.stride, op.padding});
        break;
      }
    }
  }
  dnnl::primitive_attr attr;
  attr.set_post_ops(post_ops);
  PutQuantization(&attr, key);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

MemoryArgument StepBuilder::Packed(int id, int value, const memory::desc& to,
                                   const Packing& packing) const {
  auto form = std::make_shared<const PackedForm>(Desc(value), to, packing);
  return {id, Argument::Source::kPacked, value, to, 0, std::move(form)};
}

MemoryArgument StepBuilder::Bind(const dnnl::primitive_desc_base& pd, const Binding& binding) {
  const int value = binding.value;
  if (value == kOfTheStep) {
    auto found = of_the_step_.find(binding.id);
    if (found != of_the_step_.end()) return found->second;
    memory::desc desc = pd.query_md(dnnl::query::exec_arg_md, binding.id);
    return of_the_step_[binding.id] = Kept(binding.id, desc);
  }
  const ResolvedValue& resolved = program_->resolved().values.at(static_cast<size_t>(value));
  bool seen = !binding.seen.is_zero();
  memory::desc given = seen ? binding.seen : Desc(value);
  memory::desc wanted = pd.query_md(dnnl::query::exec_arg_md, binding.id);
  if (!wanted || wanted.get_ndims() == 0) wanted = given;
  bool constant = program_->IsConstant(value);
  if (resolved.IsAny()) {
    program_->Decide(value, wanted);
    return {binding.id, Argument::Source::kValue, value, wanted};
  }
  bool weights = binding.id == DNNL_ARG_WEIGHTS || binding.id == DNNL_ARG_WEIGHTS_ITER;
  bool packed = (constant && weights) || !SamePlacement(wanted, given);
  if (!packed) return {binding.id, Argument::Source::kValue, value, given};
  if (!constant && binding.repacked) return Repacked(binding, given, wanted);
  if (!constant) {
    ThrowUnsupported("oneDNN wants value ", program_->program().values[value].name, " as ",
                     TagOf(wanted), ", not as ", TagOf(given));
  }
  executable_.weights_bytes += static_cast<int64_t>(wanted.get_size());
  if (!seen) return Packed(binding.id, value, wanted);
  return Packed(binding.id, value, wanted, {Packing::Kind::kReread, binding.through, binding.seen});
}

MemoryArgument StepBuilder::Kept(int id, const memory::desc& desc) {
  constexpr int64_t kAlignment = 64;
  MemoryArgument kept = {id, Argument::Source::kScratchpad, -1, desc, kept_bytes_};
  const auto bytes = static_cast<int64_t>(desc.get_size());
  kept_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  NeedScratchpad(kept_bytes_);
  return kept;
}

MemoryArgument StepBuilder::Repacked(const Binding& binding, const memory::desc& given,
                                     const memory::desc& wanted) {
  MemoryArgument own = {DNNL_ARG_FROM, Argument::Source::kValue, binding.value, given};
  MemoryArgument made = Kept(DNNL_ARG_TO, wanted);
  const std::vector<Operand>& operands = step_.operands;
  bool written = std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    return operand.value == binding.value && operand.IsResult();
  });
  if (written) {
    std::swap(own.id, made.id);
    to_convert_.emplace_back(made, own);
  } else {
    AddReorder(own, made);
  }
  made.id = binding.id;
  return made;
}

void StepBuilder::BindScratchpad(const dnnl::primitive_desc_base& pd,
                                 std::vector<MemoryArgument>* arguments) {
  memory::desc scratchpad = pd.query_md(dnnl::query::exec_arg_md, DNNL_ARG_SCRATCHPAD);
  if (!scratchpad || scratchpad.get_size() == 0) return;
  arguments->push_back(
      {DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1, scratchpad, kept_bytes_});
  NeedScratchpad(kept_bytes_ + static_cast<int64_t>(scratchpad.get_size()));
}

void StepBuilder::AddPrimitive(const PrimitivePointer& made, const std::vector<Binding>& bindings) {
  const dnnl::primitive_desc_base& pd = made->desc;
  const std::string& preferred = choice_.preferred;
  if (!preferred.empty() && preferred != Implementation(pd)) executable_.missing = preferred;
  NoteRefused(made->refused);
  std::vector<MemoryArgument> arguments;
  for (const Binding& binding : bindings) arguments.push_back(Bind(pd, binding));
  for (size_t i = 0; i < post_ops_.size(); ++i) {
    const PostOp& op = post_ops_[i];
    if (op.kind != PostOp::Kind::kBinary) continue;
    int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
    arguments.push_back(Bind(pd, {id, op.value, PostOpDesc(op.value)}));
  }
  BindQuantization(&arguments);
  BindScratchpad(pd, &arguments);
  AddStage(std::make_unique<PrimitiveStage>(made, std::move(arguments)), Implementation(pd));
  for (const auto& [from, to] : to_convert_) AddReorder(from, to);
  to_convert_.clear();
}

void StepBuilder::AddReorder(int src, const memory::desc& src_desc, int dst,
                             const memory::desc& dst_desc) {
  if (IsEmpty(src_desc)) return;
  AddReorder({DNNL_ARG_FROM, Argument::Source::kValue, src, src_desc},
             {DNNL_ARG_TO, Argument::Source::kValue, dst, dst_desc});
}

void StepBuilder::AddReorder(const MemoryArgument& from, const MemoryArgument& to) {
  const memory::desc &src_desc = from.desc, &dst_desc = to.desc;
  PrimitiveKey key(typeid(dnnl::reorder));
  key.Put(src_desc);
  key.Put(dst_desc);
  PrimitivePointer made = GetPrimitive<dnnl::reorder>(key, choice_, [&] {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return dnnl::reorder::primitive_desc(CpuEngine(), src_desc, CpuEngine(), dst_desc, attr);
  });
  std::vector<MemoryArgument> arguments = {from, to};
  BindScratchpad(made->desc, &arguments);
  AddStage(std::make_unique<PrimitiveStage>(made, std::move(arguments)),
           Implementation(made->desc));
}

void StepBuilder::NeedScratchpad(int64_t bytes) {
  executable_.scratchpad_bytes = std::max(executable_.scratchpad_bytes, bytes);
}

void StepBuilder::AddStage(std::unique_ptr<const Stage> stage, const std::string& implementation) {
  executable_.stages.push_back(std::move(stage));
  if (executable_.implementation.empty()) {
    executable_.implementation = implementation;
  } else if (executable_.implementation.find(implementation) == std::string::npos) {
    executable_.implementation += "+" + implementation;
  }
}

}  // namespace mxplan
