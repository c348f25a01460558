// cuDNN's answers to the rooms around it (library/library.h): steps run by the execution plans that
// they carry, reorders by cuDNN's own conversion.
#include "library/library.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "cudnn/device.h"
#include "cudnn/function_stages.h"
#include "cudnn/plans/plan.h"
#include "cudnn/plans/replay.h"
#include "cudnn/stages.h"
#include "program/step_attributes.h"

namespace mxplan {
namespace {

constexpr StepLimits kLimits = {INT64_MAX, SIZE_MAX, true};

constexpr std::string_view kTypes[] = {"float32", "float16", "bfloat16", "int32", "int8", "uint8"};

void CheckType(std::string_view dtype) {
  const auto* known = std::find(std::begin(kTypes), std::end(kTypes), dtype);
  if (known == std::end(kTypes)) ThrowUnsupported("type ", dtype, ", which cuDNN's steps have not");
}

// The value that a uid stands for: operands in their order, then those of post-ops.
int ValueOf(const Step& step, int64_t uid) {
  auto place = static_cast<size_t>(uid - 1);
  if (uid >= 1 && place < step.operands.size()) return step.operands[place].value;
  place -= step.operands.size();
  for (const PostOp& op : step.post_ops) {
    if (op.kind != PostOp::Kind::kBinary) continue;
    if (place == 0) return op.value;
    --place;
  }
  ThrowInvalidInput("its execution plan has tensor ", uid, ", which is none of the step's");
}

class CudnnBuilder final : public Builder {
 public:
  explicit CudnnBuilder(Resolved* resolved) : Builder(resolved, kLimits), resolved_(*resolved) {}

 private:
  Executable Make(const Step& step, bool) override {
    if (step.kind == "reorder") return Reorder(step);
    if (step.kind == "concat") return Concat(step);
    if (step.kind == "slice") return Slice(step);
    if (step.kind == "softmax") return Softmax(step);
    return step.kind == "pooling" && step.prepared.empty() ? Pooling(step) : Planned(step);
  }

  Executable Reorder(const Step& step) const {
    int src = step.Find("src"), dst = step.Find("dst");
    const ResolvedValue& from = resolved_.values[static_cast<size_t>(src)];
    const ResolvedValue& to = resolved_.values[static_cast<size_t>(dst)];
    Executable made;
    made.implementation = "transform_tensor";
    std::vector<Argument> arguments = {{Argument::Source::kValue, src},
                                       {Argument::Source::kValue, dst}};
    made.stages.push_back(std::make_unique<TransformStage>(
        arguments, resolved_.program->values[static_cast<size_t>(src)].dtype, from.dims,
        from.layout.strides, to.layout.strides));
    return made;
  }

  // Each piece is converted to where it stands in the whole, if it is not there.
  Executable Concat(const Step& step) const {
    int whole = step.Find("dst");
    const ResolvedValue& to = resolved_.values[static_cast<size_t>(whole)];
    auto axis = static_cast<size_t>(IntegerOf(step, "axis"));
    Executable made;
    made.implementation = "transform_tensor";
    int64_t begin = 0;
    for (const Operand& operand : step.operands) {
      if (operand.role != "src") continue;
      const ResolvedValue& piece = resolved_.values[static_cast<size_t>(operand.value)];
      const int64_t place = begin * to.layout.strides[axis] * to.layout.element_bytes;
      begin += piece.dims[axis];
      if (piece.root == to.root && piece.offset == to.offset + place) continue;
      std::vector<Argument> arguments = {{Argument::Source::kValue, operand.value},
                                         {Argument::Source::kValue, whole}};
      made.stages.push_back(std::make_unique<TransformStage>(
          arguments, resolved_.program->values[static_cast<size_t>(whole)].dtype, piece.dims,
          piece.layout.strides, to.layout.strides, Places{0, place}));
    }
    return made;
  }

  Executable Slice(const Step& step) const {
    int src = step.Find("src"), dst = step.Find("dst");
    const PhysicalLayout& from = resolved_.values[static_cast<size_t>(src)].layout;
    const ResolvedValue& to = resolved_.values[static_cast<size_t>(dst)];
    const std::vector<int64_t>& begin = IntegersOf(step, "begin");
    int64_t place = 0;
    for (size_t i = 0; i < begin.size(); ++i) place += begin[i] * from.strides[i];
    Executable made;
    made.implementation = "transform_tensor";
    std::vector<Argument> arguments = {{Argument::Source::kValue, src},
                                       {Argument::Source::kValue, dst}};
    made.stages.push_back(std::make_unique<TransformStage>(
        arguments, resolved_.program->values[static_cast<size_t>(src)].dtype, to.dims, from.strides,
        to.layout.strides, Places{place * from.element_bytes, 0}));
    return made;
  }

  Executable Softmax(const Step& step) const {
    int src = step.Find("src"), dst = step.Find("dst");
    const ResolvedValue& from = resolved_.values[static_cast<size_t>(src)];
    const Value& value = resolved_.program->values[static_cast<size_t>(src)];
    if (value.layout != resolved_.program->values[static_cast<size_t>(dst)].layout) {
      ThrowUnsupported("a softmax from ", value.layout, " to another layout");
    }
    Executable made;
    made.implementation = "softmax_forward";
    std::vector<Argument> arguments = {{Argument::Source::kValue, src},
                                       {Argument::Source::kValue, dst}};
    made.stages.push_back(std::make_unique<SoftmaxStage>(
        arguments, value.dtype, from.dims, from.layout,
        static_cast<size_t>(IntegerOf(step, "axis")), TextOf(step, "algorithm") == "log_softmax"));
    return made;
  }

  Executable Pooling(const Step& step) const {
    int src = step.Find("src"), dst = step.Find("dst");
    const ResolvedValue& from = resolved_.values[static_cast<size_t>(src)];
    const ResolvedValue& to = resolved_.values[static_cast<size_t>(dst)];
    const Value& value = resolved_.program->values[static_cast<size_t>(src)];
    const size_t rank = from.dims.size();
    if (rank < 3 || rank > 5 ||
        value.dtype != resolved_.program->values[static_cast<size_t>(dst)].dtype) {
      ThrowUnsupported("a pool of rank ", rank, " from ", value.dtype, " to another type");
    }
    Windows windows = {TextOf(step, "algorithm"), IntegersOf(step, "kernel", rank - 2, 1),
                       IntegersOf(step, "padding", rank - 2, 0),
                       IntegersOf(step, "strides", rank - 2, 1)};
    for (int64_t apart : IntegersOf(step, "dilation", rank - 2, 1)) {
      if (apart != 1) ThrowUnsupported("a pool of dilated windows");
    }
    Executable made;
    made.implementation = "pooling_forward";
    std::vector<Argument> arguments = {{Argument::Source::kValue, src},
                                       {Argument::Source::kValue, dst}};
    made.stages.push_back(std::make_unique<PoolingStage>(
        arguments, value.dtype, Extents{from.dims, from.layout.strides},
        Extents{to.dims, to.layout.strides}, windows));
    return made;
  }

  Executable Planned(const Step& step) const {
    if (step.prepared.empty()) {
      ThrowUnsupported("it carries no execution plan; compile the model again");
    }
    PlanRecord record = ReadPlan(step.prepared);
    int device = CurrentDevice();
    DeviceFacts here = FactsOf(device);
    if (!(record.made_for == here)) {
      ThrowUnsupported("its execution plan is for ", ToText(record.made_for), ", here is ",
                       ToText(here), "; compile with the device properties of this machine");
    }
    std::vector<int64_t> uids;
    int64_t workspace = 0;
    for (const EnginePlan& plan : record.plans) {
      uids.insert(uids.end(), plan.uids.begin(), plan.uids.end());
      workspace = std::max(workspace, plan.workspace);
    }
    std::sort(uids.begin(), uids.end());
    uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
    std::vector<Argument> arguments;
    for (int64_t uid : uids) arguments.push_back({Argument::Source::kValue, ValueOf(step, uid)});
    if (workspace > 0) arguments.push_back({Argument::Source::kScratchpad});
    Executable made;
    made.implementation = record.plans.front().engine;
    made.scratchpad_bytes = workspace;
    made.stages.push_back(std::make_unique<PlanStage>(
        std::move(arguments), std::move(uids), std::move(record.plans),
        StepName{resolved_.program->name, step.name, record.digest}, device));
    return made;
  }

  const Resolved& resolved_;
};

class Cudnn final : public Library {
 public:
  const char* name() const override { return "cudnn"; }
  const char* title() const override { return "cuDNN"; }

  // Contexts of one stream never run beside each other, so each stream has its own.
  ProcessState State() const override {
    ProcessState state;
    int device = CurrentDevice();
    state.settings = {device, reinterpret_cast<int64_t>(CurrentStream(device))};
    return state;
  }
  Stream* ThreadStream() const override { return ThreadQueue(); }

  // Runs are kept where the plans say so, which all of a region's do, or none.
  std::unique_ptr<Replay> NewReplay(const Program& program) const override {
    for (const Step& step : program.steps) {
      if (step.prepared.empty()) continue;
      const PlanRecord record = ReadPlan(step.prepared);
      if (!record.replays) return nullptr;
      return std::make_unique<CudaReplay>(CurrentDevice(),
                                          StepName{program.name, step.name, record.digest});
    }
    return nullptr;
  }
  const MemorySpace& memory() const override { return CudaMemory(); }

  PhysicalLayout LayoutOf(const Dims& dims, const std::string& dtype,
                          const std::string& tag) const override {
    PhysicalLayout layout;
    CheckType(dtype);
    layout.element_bytes = ElementBytes(dtype);
    layout.padded = dims;
    std::string letters = tag;
    std::sort(letters.begin(), letters.end());
    if (letters != PlainTag(dims.size())) {
      ThrowUnsupported("layout ", tag, " of rank ", dims.size(), ": expected a permutation");
    }
    layout.strides.assign(dims.size(), 1);
    int64_t elements = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      auto axis = static_cast<size_t>(tag[i] - 'a');
      layout.strides[axis] = elements;
      if (__builtin_mul_overflow(elements, dims[axis], &elements)) {
        ThrowUnsupported("a tensor of more than 2^63 elements");
      }
    }
    if (__builtin_mul_overflow(elements, layout.element_bytes, &layout.bytes)) {
      ThrowUnsupported("a tensor of more than 2^63 bytes");
    }
    return layout;
  }

  std::unique_ptr<Builder> NewBuilder(Resolved* resolved) const override {
    return std::make_unique<CudnnBuilder>(resolved);
  }
  void CheckForm(const ConstantData& constant) const override {
    ThrowInvalidInput("a constant in the form ", constant.form.packed, ": cuDNN's are plain");
  }
  void Unpack(const ConstantData& constant, char*) const override { CheckForm(constant); }
};

const bool registered = [] {
  RegisterLibrary(*new Cudnn());  // never destroyed: modules outlive main's statics
  return true;
}();

}  // namespace
}  // namespace mxplan
