// Races the exact search over orders and heights: many short searches rather than few long ones.
//
// A search that is lucky with its order and its height needs little more than one node for each
// item; one that is not may need millions.  So there are several orders, and each attempt is short.
// First all orders try the height aimed at; then each in turn tries a height between what is known
// to be too low and what is known to do.  After each round the limit doubles, and orders join that
// are a little at random.  Most placements go to random orders that are tried once and briefly: a
// few of many such attempts are lucky, however long the others would take.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_RACE_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_RACE_H_

#include <cstdint>
#include <vector>

#include "budget.h"
#include "failures.h"
#include "problem/geometry.h"
#include "problem/instance.h"
#include "search/orders.h"
#include "search/search.h"

namespace mxplan::planner {

// The heights that a race aims at.
struct Aim {
  int64_t floor;     // nothing below this height is possible
  int64_t goal;      // nothing below this height is of use
  int64_t capacity;  // a height that matters more than the others, -1 for none
  bool fit_only;     // stop at the capacity
};

class Race {
 public:
  // `bases` are a plan to beat.
  Race(const Instance& instance, const Measures& measures, Bases bases, const Aim& aim,
       Budget* budget);

  // Runs until the aim is reached, the best plan is proven to be that, or the budget is spent.
  void Run();

  const Bases& bases() const { return bases_; }
  int64_t height() const { return height_; }
  // True if it is proven that no lower plan is possible.
  bool exhausted() const { return height_ - geometry_.step < floor_; }

 private:
  bool Over();
  bool Ragged() const;
  int64_t NextHeight();
  // These note what comes of a search for a plan of `height`; true if it found one.
  bool Attempt(int64_t height, const Order& order, Tie tie, int64_t limit);
  void AttemptZones(int64_t height, int64_t limit);
  bool Note(int64_t height, Outcome outcome);

  const Instance& instance_;
  const Measures& measures_;
  const Geometry geometry_;
  const Aim aim_;
  Budget* const budget_;
  Failures failures_;
  Bases bases_;
  int64_t height_;
  int64_t floor_;
  bool fitting_ = false;  // the last height was the capacity
  uint64_t tried_ = 0;    // heights between the floor and the best
};

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_RACE_H_
