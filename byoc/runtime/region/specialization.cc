// Building and running a specialization; see specialization.h.
#include "region/specialization.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "memory/memory_rules.h"
#include "memory/planner.h"
#include "region/context.h"

namespace mxplan {
namespace {

// Whether all libraries have the same threads, several, and nothing asks for all of them.
bool MayTakeFewerThreads(const std::vector<ProcessState>& states) {
  static const bool allowed = [] {
    const char* wish = std::getenv("TVM_MXPLAN_FEWER_THREADS");
    return wish == nullptr || std::strcmp(wish, "0") != 0;
  }();
  return allowed && std::all_of(states.begin(), states.end(), [&](const ProcessState& state) {
           return state.threads > 1 && state.threads == states[0].threads && !state.parallel;
         });
}

// oneDNN's products by this algorithm split their sums by the number of threads.
constexpr const char* kSplitByThreads = "gemm";

}  // namespace

Specialization::Specialization(const Program& program, const Libraries& libraries, Weights* weights,
                               std::vector<int64_t> symbols)
    : program_(program),
      libraries_(libraries),
      weights_(weights),
      symbols_(std::move(symbols)),
      states_(libraries.States()) {
  resolved_ = Resolve(program_, symbols_, libraries_);
  CheckPlaceable(resolved_);
  CheckConstants();
  physical_shapes_ = PhysicalShapesOf(resolved_);
  Builders builders(libraries_, &resolved_);
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    executables_.push_back(builders.Build(i, false));
  }
  std::vector<Weights::Request> requests;
  for (const Executable& executable : executables_) {
    for (const auto& stage : executable.stages) {
      for (const Argument& argument : stage->arguments()) {
        if (argument.source == Argument::Source::kPacked) requests.push_back(PackRequest(argument));
      }
    }
  }
  packed_ = weights_->Pack(requests);
  value_offsets_.assign(program_.values.size(), -1);
  scratchpad_offsets_.assign(program_.steps.size(), 0);
  if (HasPlan()) {
    UsePlan();
  } else {
    MakePlan();
  }
  Placement placement{value_offsets_, {}};
  for (size_t i = 0; i < executables_.size(); ++i) {
    placement.scratchpads.push_back({scratchpad_offsets_[i], executables_[i].scratchpad_bytes});
  }
  CheckMemory(resolved_, placement);
  if (MayTakeFewerThreads(states_)) {
    thread_choice_ = std::make_unique<ThreadChoice>(states_[0].threads);
  }
}

Specialization::~Specialization() = default;

Weights::Request Specialization::PackRequest(const Argument& argument) const {
  const ResolvedValue& value = resolved_.values[static_cast<size_t>(argument.value)];
  return {program_.values[static_cast<size_t>(value.root)].index, value.offset, argument.form};
}

const char* Specialization::PackedData(const Argument& argument) const {
  Weights::Request request = PackRequest(argument);
  for (const Weights::Packed& packed : packed_) {
    if (packed.request == request) return packed.weights->data();
  }
  if (!weights_->UsableInPlace(request)) {
    ThrowInternal("constant ", request.constant, " was not packed");
  }
  return weights_->Source(request);
}

std::vector<bool> Specialization::ReadInPlace() const {
  std::vector<bool> read(weights_->constants().size(), false);
  for (const Executable& executable : executables_) {
    for (const auto& stage : executable.stages) {
      for (const Argument& argument : stage->arguments()) {
        if (argument.value < 0) continue;
        int root = resolved_.values[static_cast<size_t>(argument.value)].root;
        const Value& value = program_.values[static_cast<size_t>(root)];
        bool packed = argument.source == Argument::Source::kPacked &&
                      !weights_->UsableInPlace(PackRequest(argument));
        if (value.kind == ValueKind::kConstant && !packed) {
          read[static_cast<size_t>(value.index)] = true;
        }
      }
    }
  }
  return read;
}

void Specialization::CheckConstants() const {
  const std::vector<ConstantData>& constants = weights_->constants();
  for (size_t i = 0; i < program_.constants.size(); ++i) {
    const Value& value = program_.values[program_.constants[i]];
    int64_t bytes = resolved_.values[program_.constants[i]].Bytes();
    if (constants[i].dtype != value.dtype || constants[i].bytes != bytes) {
      ThrowInvalidInput("constant ", i, " (", value.name, ") should be ", bytes, " bytes of ",
                        value.dtype, ", not ", constants[i].bytes, " of ", constants[i].dtype);
    }
  }
}

bool Specialization::HasPlan() const {
  if (!program_.IsStatic() || program_.arena_bytes < 0) return false;
  for (const Value& value : program_.values) {
    bool root_local = value.kind == ValueKind::kLocal && value.alias_of < 0;
    if (root_local && value.offset < 0) return false;
  }
  return true;
}

// Takes the program's offsets, and holds them against what the library asks for.
void Specialization::UsePlan() {
  arena_bytes_ = program_.arena_bytes;
  for (size_t i = 0; i < program_.values.size(); ++i) {
    const Value& value = program_.values[i];
    if (value.kind != ValueKind::kLocal || value.alias_of >= 0) continue;
    int64_t bytes = resolved_.values[i].Bytes();
    if (value.nbytes >= 0 && value.nbytes < bytes) {
      ThrowInvalidInput("value ", value.name, " was planned with ", value.nbytes,
                        " bytes, it takes ", bytes);
    }
    if (value.offset > arena_bytes_ - bytes) {
      ThrowInvalidInput("value ", value.name, " at byte ", value.offset, " with ", bytes,
                        " bytes leaves the arena of ", arena_bytes_);
    }
    value_offsets_[i] = value.offset;
  }
  // Layouts fix the bytes of values, but scratchpads also depend on the number of threads and on
  // the processor: one that outgrew its plan stands beside the arena, where all such take turns.
  for (size_t i = 0; i < executables_.size(); ++i) {
    const Step& step = program_.steps[i];
    int64_t bytes = executables_[i].scratchpad_bytes;
    bool fits = step.scratchpad_offset >= 0 && step.scratchpad_bytes >= bytes;
    if (fits && step.scratchpad_offset > program_.arena_bytes - bytes) {
      ThrowInvalidInput("step ", step.name, ": the scratchpad at byte ", step.scratchpad_offset,
                        " with ", bytes, " bytes leaves the arena of ", program_.arena_bytes);
    }
    scratchpad_offsets_[i] = fits ? step.scratchpad_offset : -1;
    if (!fits) spilled_bytes_ = std::max(spilled_bytes_, AlignUp(bytes));
  }
}

// Plans here: one item for each root local that a step touches, one for each scratchpad.
void Specialization::MakePlan() {
  std::vector<ArenaItem> items(program_.values.size());
  std::vector<bool> used(program_.values.size(), false);
  auto touch = [&](int value, int step) {
    int root = resolved_.values[value].root;
    if (program_.values[root].kind != ValueKind::kLocal) return;
    ArenaItem& item = items[root];
    if (!used[root]) item = {step, step + 1, resolved_.values[root].Bytes()};
    used[root] = true;
    item.death = step + 1;
  };
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    const Step& step = program_.steps[i];
    for (const Operand& operand : step.operands) touch(operand.value, static_cast<int>(i));
    for (const PostOp& op : step.post_ops) {
      if (op.kind == PostOp::Kind::kBinary) touch(op.value, static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < executables_.size(); ++i) {
    int step = static_cast<int>(i);
    items.push_back({step, step + 1, executables_[i].scratchpad_bytes});
  }
  ArenaPlan plan = PlanArena(items);
  arena_bytes_ = plan.bytes;
  auto split = plan.offsets.begin() + static_cast<std::ptrdiff_t>(program_.values.size());
  value_offsets_.assign(plan.offsets.begin(), split);
  scratchpad_offsets_.assign(split, plan.offsets.end());
}

std::unique_ptr<ExecutionContext> Specialization::Acquire(const char* lent) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      auto same = std::find_if(idle_.begin(), idle_.end(),
                               [&](const auto& context) { return context->arena() == lent; });
      if (same != idle_.end()) std::iter_swap(same, idle_.end() - 1);
      std::unique_ptr<ExecutionContext> context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
    ++contexts_;
    idle_.reserve(contexts_);  // so that Release never allocates
  }
  return std::make_unique<ExecutionContext>(*this);
}

void Specialization::Release(std::unique_ptr<ExecutionContext> context) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(context));
}

void Specialization::Run(const std::vector<void*>& io, char* lent) {
  std::unique_ptr<ExecutionContext> context = Acquire(lent);
  try {
    context->Run(io, lent);
  } catch (...) {
    Release(std::move(context));
    throw;
  }
  Release(std::move(context));
  calls_.fetch_add(1, std::memory_order_relaxed);
}

bool Specialization::ComputesLike(const Specialization& other) const {
  if (arena_bytes_ > other.arena_bytes_ || physical_shapes_ != other.physical_shapes_) {
    return false;
  }
  for (size_t i = 0; i < executables_.size(); ++i) {
    const std::string& own = executables_[i].implementation;
    if (own.find(kSplitByThreads) != std::string::npos) return false;
    if (own != other.executables_[i].implementation) return false;
  }
  return true;
}

size_t Specialization::contexts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return contexts_;
}

}  // namespace mxplan
