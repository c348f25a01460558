// One call at a time needs an arena and what stages keep for their calls.  A call sets the
// addresses of inputs and outputs and runs the stages.
//
// The arena is the context's own, or lent by the caller, who planned it with memory of others. What
// stands in it keeps its address as long as the arena does.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_CONTEXT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_CONTEXT_H_

#include <memory>
#include <vector>

#include "debug/memory_debug.h"
#include "library/library.h"
#include "library/stage.h"

namespace mxplan {

class Specialization;

class ExecutionContext {
 public:
  explicit ExecutionContext(const Specialization& owner);
  // `io` holds the addresses of inputs, then outputs; `lent` is an arena, or null for the context's
  // own.  Not for two threads at once.
  void Run(const std::vector<void*>& io, char* lent);
  // The arena of the last run; null before the first.
  const char* arena() const { return arena_; }

 private:
  struct Call {
    std::unique_ptr<StageCall> stage;
    size_t step;
  };
  // An argument that is, or lies in, an input or output.
  struct Follower {
    StageCall* call;
    size_t argument;
    size_t io;
    int64_t offset;
  };
  // An argument in the arena.
  struct Resident {
    StageCall* call;
    size_t argument;
    int64_t offset;
  };

  // Gives an argument its address, or notes where it will come from.
  void Place(const Argument& argument, size_t number, size_t step, StageCall* call);
  // Moves what stands in the arena to `lent`, or to the context's own bytes.
  void Settle(char* lent);
  Stream* StreamOf(size_t step) const;
  // All stages, one after another.
  void Work() const;
  void Execute(Stream* stream, const Call& call) const;
  // The same run with every step under watch; see step_watcher.h.
  void RunWatched(const std::vector<void*>& io);

  const Specialization& owner_;
  std::shared_ptr<char> own_;    // none until a run lends no arena
  std::shared_ptr<char> spill_;  // scratchpads that outgrew the plan
  char* arena_ = nullptr;
  std::vector<Resident> residents_;
  std::vector<Follower> followers_;
  std::vector<Call> calls_;
  std::unique_ptr<Replay> replay_;      // null where runs are not kept
  std::vector<void*> addresses_;        // of the run, by which that finds what it kept
  std::unique_ptr<MemoryDebug> debug_;  // none until a run is watched
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_CONTEXT_H_
