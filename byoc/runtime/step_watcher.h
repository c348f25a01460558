// What looks on while a run takes its steps one by one: memory_debug.h, observer.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_STEP_WATCHER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_STEP_WATCHER_H_

#include <cstddef>
#include <vector>

namespace mxplan {

class StepWatcher {
 public:
  StepWatcher() = default;
  virtual ~StepWatcher() = default;
  StepWatcher(const StepWatcher&) = delete;
  StepWatcher& operator=(const StepWatcher&) = delete;

  // `io` holds the addresses of inputs, then outputs, and outlives the run.
  virtual void Begin(const std::vector<void*>& io) = 0;
  virtual void Before(size_t step) = 0;
  virtual void After(size_t step) = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_STEP_WATCHER_H_
