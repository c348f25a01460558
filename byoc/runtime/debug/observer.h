// Runs observed: the calling thread may ask to be shown what every step reads and writes, byte for
// byte, so that somebody else can work the step out again and compare.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_DEBUG_OBSERVER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_DEBUG_OBSERVER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "debug/step_watcher.h"
#include "debug/value_bytes.h"

namespace mxplan {

class Specialization;

class Observer {
 public:
  // Bytes of one value, valid during the call.
  struct Seen {
    int value;
    Span bytes;
  };

  Observer() = default;
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  virtual void Begin(const std::vector<int64_t>& symbols) = 0;
  virtual void Before(size_t step, const std::vector<Seen>& reads) = 0;
  virtual void After(size_t step, const std::vector<Seen>& results) = 0;
};

// The observer of the runs that the calling thread begins: none at first, none with nullptr.
void SetThreadObserver(std::shared_ptr<Observer> observer);
const std::shared_ptr<Observer>& ThreadObserver();

// Shows one run of a context to an observer.
class ObservedRun final : public StepWatcher {
 public:
  ObservedRun(const Specialization& owner, std::shared_ptr<Observer> observer)
      : owner_(owner), observer_(std::move(observer)) {}

  void Begin(const std::vector<void*>& io, char* arena, bool lent) override;
  void Before(size_t step) override;
  void After(size_t step) override;

 private:
  Observer::Seen See(int value) const;

  const Specialization& owner_;
  std::shared_ptr<Observer> observer_;
  char* arena_ = nullptr;
  const std::vector<void*>* io_ = nullptr;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_DEBUG_OBSERVER_H_
