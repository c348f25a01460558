// Execution contexts; see context.h.
#include "region/context.h"

#include <optional>

#include "base/error.h"
#include "debug/observer.h"
#include "onednn/engine.h"
#include "region/specialization.h"

namespace mxplan {

ExecutionContext::ExecutionContext(const Specialization& owner) : owner_(owner) {
  if (owner.spilled_bytes() > 0) spill_ = Buffer(owner.spilled_bytes());
  std::vector<std::vector<Known>> known(owner.program().values.size());
  for (size_t i = 0; i < owner.executables().size(); ++i) {
    for (const auto& stage : owner.executables()[i].stages) {
      StageCall call{stage.get(), i, {}};
      for (const Argument& argument : stage->arguments()) {
        std::vector<Known>* list =
            argument.value >= 0 ? &known[static_cast<size_t>(argument.value)] : nullptr;
        call.arguments.push_back({argument.id, MemoryFor(argument, i, list)});
      }
      calls_.push_back(std::move(call));
    }
  }
}

dnnl_memory_t ExecutionContext::NewMemory(const dnnl::memory::desc& desc, const void* data) {
  memories_.emplace_back(desc, CpuEngine(), const_cast<void*>(data));  // oneDNN has no const memory
  return memories_.back().get();
}

dnnl_memory_t ExecutionContext::MemoryFor(const Argument& argument, size_t step,
                                          std::vector<Known>* known) {
  if (argument.source == Argument::Source::kScratchpad) {
    if (owner_.IsSpilled(step)) return NewMemory(argument.desc, spill_.data() + argument.offset);
    dnnl_memory_t memory = NewMemory(argument.desc, nullptr);
    residents_.push_back({memory, owner_.ScratchpadOffset(step) + argument.offset});
    return memory;
  }
  for (const Known& entry : *known) {
    if (entry.argument.source == argument.source && entry.argument.desc == argument.desc &&
        entry.argument.packing == argument.packing &&
        entry.argument.desc.get_submemory_offset() == argument.desc.get_submemory_offset()) {
      return entry.memory;
    }
  }
  const Program& program = owner_.program();
  const ResolvedValue& value = owner_.resolved().values[static_cast<size_t>(argument.value)];
  const Value& root = program.values[static_cast<size_t>(value.root)];
  dnnl_memory_t memory = nullptr;
  if (argument.source == Argument::Source::kPacked) {
    memory = NewMemory(argument.desc, owner_.PackedData(argument));
  } else if (root.kind == ValueKind::kLocal) {
    memory = NewMemory(argument.desc, nullptr);
    residents_.push_back({memory, owner_.ValueOffset(value.root) + value.offset});
  } else if (root.kind == ValueKind::kConstant) {
    const char* plain = owner_.weights().Plain(static_cast<size_t>(root.index));
    memory = NewMemory(argument.desc, plain + value.offset);
  } else {
    memory = NewMemory(argument.desc, nullptr);
    size_t base = root.kind == ValueKind::kOutput ? program.inputs.size() : 0;
    followers_.push_back({memory, base + static_cast<size_t>(root.index), value.offset});
  }
  known->push_back({argument, memory});
  return memory;
}

void ExecutionContext::Settle(char* lent) {
  if (lent == nullptr && own_.data() == nullptr) own_ = Buffer(owner_.arena_bytes());
  char* arena = lent != nullptr ? lent : own_.data();
  if (arena == arena_) return;
  if (lent != nullptr) WishHugePages(lent, owner_.arena_bytes());
  for (const Resident& resident : residents_) {
    dnnl_memory_set_data_handle(resident.memory, arena + resident.offset);
  }
  arena_ = arena;
}

void ExecutionContext::Run(const std::vector<void*>& io, char* lent) {
  Settle(lent);
  for (const Follower& follower : followers_) {
    dnnl_memory_set_data_handle(follower.memory,
                                static_cast<char*>(io[follower.io]) + follower.offset);
  }
  dnnl_stream_t stream = ThreadStream().get();
  if (MemoryDebugOn() || ThreadObserver()) {
    RunWatched(stream, io);
    return;
  }
  for (const StageCall& call : calls_) Execute(stream, call);
  dnnl::error::wrap_c_api(dnnl_stream_wait(stream), "could not wait for a stream");
}

void ExecutionContext::Execute(dnnl_stream_t stream, const StageCall& call) const {
  try {
    call.stage->Execute(stream, call.arguments);
  } catch (const dnnl::error& error) {
    const Step& step = owner_.program().steps[call.step];
    ThrowInternal(step.kind, " ", step.name, ": oneDNN ", error.what(), " (status ",
                  static_cast<int>(error.status), ")");
  }
}

void ExecutionContext::RunWatched(dnnl_stream_t stream, const std::vector<void*>& io) {
  std::vector<StepWatcher*> watchers;
  std::optional<ObservedRun> observed;  // the first to look: the other poisons what is dead
  if (ThreadObserver()) watchers.push_back(&observed.emplace(owner_, ThreadObserver()));
  if (MemoryDebugOn()) {
    if (!debug_) debug_ = std::make_unique<MemoryDebug>(owner_, spill_.data());
    watchers.push_back(debug_.get());
  }
  for (StepWatcher* watcher : watchers) watcher->Begin(io, arena_, arena_ != own_.data());
  auto call = calls_.begin();
  for (size_t step = 0; step < owner_.program().steps.size(); ++step) {
    for (StepWatcher* watcher : watchers) watcher->Before(step);
    for (; call != calls_.end() && call->step == step; ++call) Execute(stream, *call);
    dnnl::error::wrap_c_api(dnnl_stream_wait(stream), "could not wait for a stream");
    for (StepWatcher* watcher : watchers) watcher->After(step);
  }
}

}  // namespace mxplan
