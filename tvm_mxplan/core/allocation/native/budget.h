// The budget of a search: nodes, which are counted alike on every machine, and time.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_BUDGET_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_BUDGET_H_

#include <chrono>
#include <cstdint>

namespace mxplan::planner {

class Budget {
 public:
  // No limit of time where `seconds` is negative.  Whoever waits may set `*cancelled` to end the
  // search as if time were up.
  Budget(int64_t nodes, double seconds, const volatile int32_t* cancelled)
      : nodes_(nodes), timed_(seconds >= 0), cancelled_(cancelled) {
    // Beyond a year no limit is meant, and the clock's numbers might overflow.
    if (seconds > 3e7) timed_ = false;
    if (timed_) {
      end_ = Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
  }

  int64_t left() const { return nodes_ - spent_; }
  int64_t spent() const { return spent_; }

  // Counts a placement among `items` open ones: a node, and more where there are many to look at.
  void Spend(int64_t items) {
    spent_ += 1 + items / kItemsPerNode;
    ++placements_;
  }

  // True if time is up or the search cancelled; looks at the clock.
  bool Expired() {
    expired_ =
        expired_ || (cancelled_ != nullptr && *cancelled_ != 0) || (timed_ && Clock::now() >= end_);
    return expired_;
  }

  // True if nothing is left; looks at the clock now and then.
  bool Over() { return spent_ >= nodes_ || expired_ || (placements_ % 64 == 63 && Expired()); }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr int64_t kItemsPerNode = 512;

  int64_t nodes_;
  int64_t spent_ = 0;
  int64_t placements_ = 0;
  bool timed_;
  bool expired_ = false;
  const volatile int32_t* cancelled_;
  Clock::time_point end_;
};

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_BUDGET_H_
