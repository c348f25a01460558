// What one call at a time needs: an arena and a memory object for every argument of every stage.
// Everything is made up front; a call sets the addresses of inputs and outputs and runs the stages.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CONTEXT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CONTEXT_H_

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "buffer.h"
#include "executable.h"
#include "memory_debug.h"

namespace mxplan {

class Specialization;

class ExecutionContext {
 public:
  explicit ExecutionContext(const Specialization& owner);
  // `io` holds the addresses of inputs, then outputs.  Not for two threads at once.
  void Run(const std::vector<void*>& io);

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
  struct Known {
    Argument argument;
    dnnl_memory_t memory;
  };

  void Execute(dnnl_stream_t stream, const StageCall& call) const;
  // The same run with every step under watch; see step_watcher.h.
  void RunWatched(dnnl_stream_t stream, const std::vector<void*>& io);
  dnnl_memory_t MemoryFor(const Argument& argument, size_t step, std::vector<Known>* known);
  dnnl_memory_t NewMemory(const dnnl::memory::desc& desc, const void* data);

  const Specialization& owner_;
  Buffer arena_;
  std::vector<dnnl::memory> memories_;
  std::vector<Follower> followers_;
  std::vector<StageCall> calls_;
  std::unique_ptr<MemoryDebug> debug_;  // none until a run is watched
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CONTEXT_H_
