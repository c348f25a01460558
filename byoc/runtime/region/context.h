// What one call at a time needs: an arena and a memory object for every argument of every stage.
// A call sets the addresses of inputs and outputs and runs the stages.
//
// The arena is the context's own, or lent by the caller, who planned it with memory of others. What
// stands in it keeps its address as long as the arena does.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_CONTEXT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_CONTEXT_H_

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "debug/memory_debug.h"
#include "memory/buffer.h"
#include "onednn/builder/step_builder.h"

namespace mxplan {

class Specialization;

class ExecutionContext {
 public:
  explicit ExecutionContext(const Specialization& owner);
  // `io` holds the addresses of inputs, then outputs; `lent` is an arena, or null for the context's
  // own.  Not for two threads at once.
  void Run(const std::vector<void*>& io, char* lent);
  // Where the last run had its arena; null before the first.
  const char* arena() const { return arena_; }

 private:
  struct StageCall {
    const Stage* stage;
    size_t step;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  // A memory object that follows an input or output.
  struct Follower {
    dnnl_memory_t memory;
    size_t io;
    int64_t offset;
  };
  // A memory object in the arena.
  struct Resident {
    dnnl_memory_t memory;
    int64_t offset;
  };
  struct Known {
    Argument argument;
    dnnl_memory_t memory;
  };

  // Moves what stands in the arena to `lent`, or to the context's own bytes.
  void Settle(char* lent);
  void Execute(dnnl_stream_t stream, const StageCall& call) const;
  // The same run with every step under watch; see step_watcher.h.
  void RunWatched(dnnl_stream_t stream, const std::vector<void*>& io);
  dnnl_memory_t MemoryFor(const Argument& argument, size_t step, std::vector<Known>* known);
  dnnl_memory_t NewMemory(const dnnl::memory::desc& desc, const void* data);

  const Specialization& owner_;
  Buffer own_;    // none until a run lends no arena
  Buffer spill_;  // scratchpads that outgrew the plan
  char* arena_ = nullptr;
  std::vector<dnnl::memory> memories_;
  std::vector<Resident> residents_;
  std::vector<Follower> followers_;
  std::vector<StageCall> calls_;
  std::unique_ptr<MemoryDebug> debug_;  // none until a run is watched
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_CONTEXT_H_
