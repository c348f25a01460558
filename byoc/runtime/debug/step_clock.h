// A clock for the steps of runs: what each takes, with next to nothing between two of them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_DEBUG_STEP_CLOCK_H_
#define TVM_MXPLAN_BYOC_RUNTIME_DEBUG_STEP_CLOCK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "debug/observer.h"

namespace mxplan {

class StepClock final : public Observer {
 public:
  // Of each step of each run, in their order.
  const std::vector<int64_t>& nanoseconds() const { return nanoseconds_; }

  void Begin(const std::vector<int64_t>& /*symbols*/) override {}
  void Before(size_t /*step*/, const std::vector<Seen>& /*reads*/) override { began_ = Now(); }
  void After(size_t /*step*/, const std::vector<Seen>& /*results*/) override {
    nanoseconds_.push_back(std::chrono::nanoseconds(Now() - began_).count());
  }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::time_point Now() { return Clock::now(); }

  Clock::time_point began_;
  std::vector<int64_t> nanoseconds_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_DEBUG_STEP_CLOCK_H_
