// Execution contexts; see context.h.
#include "region/context.h"

#include <optional>

#include "base/error.h"
#include "debug/observer.h"
#include "memory/buffer.h"
#include "region/specialization.h"

namespace mxplan {

ExecutionContext::ExecutionContext(const Specialization& owner) : owner_(owner) {
  const Library& library = owner.libraries().own();
  const MemorySpace& memory = library.memory();
  replay_ = library.NewReplay(owner.program());
  if (owner.spilled_bytes() > 0) spill_ = memory.Allocate(owner.spilled_bytes());
  for (size_t i = 0; i < owner.executables().size(); ++i) {
    for (const auto& stage : owner.executables()[i].stages) {
      calls_.push_back({stage->NewCall(), i});
      const std::vector<Argument>& arguments = stage->arguments();
      for (size_t j = 0; j < arguments.size(); ++j) {
        Place(arguments[j], j, i, calls_.back().stage.get());
      }
    }
  }
}

void ExecutionContext::Place(const Argument& argument, size_t number, size_t step,
                             StageCall* call) {
  // Stages do not write to constants, but take all addresses alike.
  auto set = [&](const char* data) { call->SetAddress(number, const_cast<char*>(data)); };
  if (argument.source == Argument::Source::kScratchpad) {
    if (owner_.IsSpilled(step)) return set(spill_.get() + argument.offset);
    residents_.push_back({call, number, owner_.ScratchpadOffset(step) + argument.offset});
    return;
  }
  if (argument.source == Argument::Source::kPacked) return set(owner_.PackedData(argument));
  const Program& program = owner_.program();
  const ResolvedValue& value = owner_.resolved().values[static_cast<size_t>(argument.value)];
  const Value& root = program.values[static_cast<size_t>(value.root)];
  if (root.kind == ValueKind::kLocal) {
    residents_.push_back({call, number, owner_.ValueOffset(value.root) + value.offset});
  } else if (root.kind == ValueKind::kConstant) {
    set(owner_.weights().Resident(static_cast<size_t>(root.index)) + value.offset);
  } else {
    size_t base = root.kind == ValueKind::kOutput ? program.inputs.size() : 0;
    followers_.push_back({call, number, base + static_cast<size_t>(root.index), value.offset});
  }
}

void ExecutionContext::Settle(char* lent) {
  const MemorySpace& memory = owner_.libraries().own().memory();
  if (lent == nullptr && own_ == nullptr) own_ = memory.Allocate(owner_.arena_bytes());
  char* arena = lent != nullptr ? lent : own_.get();
  if (arena == arena_) return;
  bool host = memory.kind() == MemorySpace::Kind::kHost;
  if (lent != nullptr && host) WishHugePages(lent, owner_.arena_bytes());
  for (const Resident& resident : residents_) {
    resident.call->SetAddress(resident.argument, arena + resident.offset);
  }
  arena_ = arena;
}

void ExecutionContext::Run(const std::vector<void*>& io, char* lent) {
  Settle(lent);
  for (const Follower& follower : followers_) {
    follower.call->SetAddress(follower.argument,
                              static_cast<char*>(io[follower.io]) + follower.offset);
  }
  bool readable = owner_.libraries().own().memory().kind() == MemorySpace::Kind::kHost;
  if (readable && (MemoryDebugOn() || ThreadObserver())) {
    RunWatched(io);
    return;
  }
  if (replay_ == nullptr) return Work();
  addresses_ = io;
  addresses_.push_back(arena_);
  replay_->Run(addresses_, [this] { Work(); });
}

void ExecutionContext::Work() const {
  Stream* stream = nullptr;  // where the last step went
  for (const Call& call : calls_) {
    Stream* next = StreamOf(call.step);
    if (stream != nullptr && stream != next) stream->Wait();
    stream = next;
    Execute(stream, call);
  }
  if (stream != nullptr) stream->Wait();
}

Stream* ExecutionContext::StreamOf(size_t step) const {
  const Libraries& libraries = owner_.libraries();
  return libraries[libraries.NumberOf(step)].ThreadStream();
}

void ExecutionContext::Execute(Stream* stream, const Call& call) const {
  try {
    call.stage->Run(stream);
  } catch (const Error& error) {
    const Step& step = owner_.program().steps[call.step];
    throw Error(error.kind(), Concat(step.kind, " ", step.name, ": ", error.what()));
  }
}

void ExecutionContext::RunWatched(const std::vector<void*>& io) {
  std::vector<StepWatcher*> watchers;
  std::optional<ObservedRun> observed;  // the first to look: the other poisons what is dead
  if (ThreadObserver()) watchers.push_back(&observed.emplace(owner_, ThreadObserver()));
  if (MemoryDebugOn()) {
    if (!debug_) debug_ = std::make_unique<MemoryDebug>(owner_, spill_.get());
    watchers.push_back(debug_.get());
  }
  for (StepWatcher* watcher : watchers) watcher->Begin(io, arena_, arena_ != own_.get());
  auto call = calls_.begin();
  for (size_t step = 0; step < owner_.program().steps.size(); ++step) {
    for (StepWatcher* watcher : watchers) watcher->Before(step);
    Stream* stream = StreamOf(step);
    for (; call != calls_.end() && call->step == step; ++call) Execute(stream, *call);
    stream->Wait();
    for (StepWatcher* watcher : watchers) watcher->After(step);
  }
}

}  // namespace mxplan
