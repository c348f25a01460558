// The interface of those who look on while a run takes its steps one by one: memory_debug.h,
// observer.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_DEBUG_STEP_WATCHER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_DEBUG_STEP_WATCHER_H_

#include <cstddef>
#include <vector>

namespace mxplan {

class StepWatcher {
 public:
  StepWatcher() = default;
  virtual ~StepWatcher() = default;
  StepWatcher(const StepWatcher&) = delete;
  StepWatcher& operator=(const StepWatcher&) = delete;

  // `io` holds the addresses of inputs, then outputs; `arena` is the context's own, or `lent` by
  // the caller, who may keep other things in it.  Both outlive the run.
  virtual void Begin(const std::vector<void*>& io, char* arena, bool lent) = 0;
  virtual void Before(size_t step) = 0;
  virtual void After(size_t step) = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_DEBUG_STEP_WATCHER_H_
