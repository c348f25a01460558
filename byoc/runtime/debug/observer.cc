// Runs observed; see observer.h.
#include "debug/observer.h"

#include "region/specialization.h"

namespace mxplan {
namespace {

std::shared_ptr<Observer>& Slot() {
  thread_local std::shared_ptr<Observer> observer;
  return observer;
}

}  // namespace

void SetThreadObserver(std::shared_ptr<Observer> observer) { Slot() = std::move(observer); }

const std::shared_ptr<Observer>& ThreadObserver() { return Slot(); }

void ObservedRun::Begin(const std::vector<void*>& io, char* arena, bool /*lent*/) {
  io_ = &io;
  arena_ = arena;
  observer_->Begin(owner_.symbols());
}

void ObservedRun::Before(size_t step) {
  std::vector<Observer::Seen> reads;
  for (int value : ReadsOf(owner_.program(), step)) reads.push_back(See(value));
  observer_->Before(step, reads);
}

void ObservedRun::After(size_t step) {
  std::vector<Observer::Seen> results;
  for (int value : owner_.program().steps[step].Results()) results.push_back(See(value));
  observer_->After(step, results);
}

Observer::Seen ObservedRun::See(int value) const {
  return {value, BytesOf(owner_, arena_, *io_, value)};
}

}  // namespace mxplan
