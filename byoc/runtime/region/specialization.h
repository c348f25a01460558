// A region for one assignment of its symbols and one state of the process: executables, and where
// everything stands in the arena. Immutable once built; the contexts it lends out hold what changes
// from call to call.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_SPECIALIZATION_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_SPECIALIZATION_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "library/library.h"
#include "region/libraries.h"
#include "region/signature.h"
#include "region/thread_choice.h"
#include "weights/weights.h"

namespace mxplan {

class ExecutionContext;

class Specialization {
 public:
  // `program`, `libraries` and `weights` outlive the object.  Builds all executables, for the
  // calling thread's states, and packs what they need.
  Specialization(const Program& program, const Libraries& libraries, Weights* weights,
                 std::vector<int64_t> symbols);
  ~Specialization();
  Specialization(const Specialization&) = delete;
  Specialization& operator=(const Specialization&) = delete;

  const Program& program() const { return program_; }
  const Libraries& libraries() const { return libraries_; }
  const Resolved& resolved() const { return resolved_; }
  const std::vector<Dims>& physical_shapes() const { return physical_shapes_; }
  const std::vector<int64_t>& symbols() const { return symbols_; }
  // Of the libraries when the executables were made.
  const std::vector<ProcessState>& states() const { return states_; }
  const std::vector<Executable>& executables() const { return executables_; }
  int64_t arena_bytes() const { return arena_bytes_; }
  // Bytes beside the planned arena: scratchpads that grew since, because of more threads, say.
  int64_t spilled_bytes() const { return spilled_bytes_; }
  bool IsSpilled(size_t step) const { return scratchpad_offsets_[step] < 0; }
  // Arena offset of a root local's bytes, or of a step's scratchpad.
  int64_t ValueOffset(int root) const { return value_offsets_[static_cast<size_t>(root)]; }
  int64_t ScratchpadOffset(size_t step) const { return scratchpad_offsets_[step]; }
  Weights& weights() const { return *weights_; }
  // The bytes of a packed argument: in their packed form, or as they came.
  const char* PackedData(const Argument& argument) const;
  const std::vector<Weights::Packed>& packed() const { return packed_; }
  // For each constant, whether some step reads it unpacked.
  std::vector<bool> ReadInPlace() const;

  // Runs the region; `io` holds the addresses of inputs, then outputs.  `lent` has arena_bytes()
  // bytes for this call alone, or is null.
  void Run(const std::vector<void*>& io, char* lent);

  // The choice of a call's threads; null where it has one thread, or none to spare.
  ThreadChoice* thread_choice() const { return thread_choice_.get(); }
  // Whether the other's results have the same bits, by the same implementations, and its arena is
  // large enough.
  bool ComputesLike(const Specialization& other) const;

  size_t contexts() const;
  int64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  void UsePlan();
  void MakePlan();
  bool HasPlan() const;
  void CheckConstants() const;
  Weights::Request PackRequest(const Argument& argument) const;
  // Prefers a context that had its arena at `lent` before: nothing in it has to move then.
  std::unique_ptr<ExecutionContext> Acquire(const char* lent);
  void Release(std::unique_ptr<ExecutionContext> context);

  const Program& program_;
  const Libraries& libraries_;
  Weights* weights_;
  std::vector<int64_t> symbols_;
  std::vector<ProcessState> states_;
  Resolved resolved_;
  std::vector<Dims> physical_shapes_;
  std::vector<Executable> executables_;
  std::vector<Weights::Packed> packed_;
  std::vector<int64_t> value_offsets_;
  std::vector<int64_t> scratchpad_offsets_;
  int64_t arena_bytes_ = 0;
  int64_t spilled_bytes_ = 0;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<ExecutionContext>> idle_;
  size_t contexts_ = 0;
  std::atomic<int64_t> calls_{0};
  std::unique_ptr<ThreadChoice> thread_choice_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_SPECIALIZATION_H_
