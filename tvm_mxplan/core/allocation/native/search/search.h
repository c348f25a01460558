// The exact search: is there a plan of at most a given height?
//
// Items are placed one by one on top of what is placed already, never below it.  Any plan can be
// pushed down until every item stands on the floor or on another one, and such a plan is found by
// asking, again and again, of an item that nothing open can get below:
//
//     does it stand at its least base, or does something open push it up?
//
//     address                           x, y are placed; a, b, c are open.
//        |          +-----+             least[a] = top of x, least[b] = 0, least[c] = top of y.
//        |   +------+  c  |             b is next.  Either b stands at 0, and then a stands at the
//        |   |  a   +-----+             top of x or of b, whichever is higher.  Or something pushes
//        |   +----+-+--+  |             b up: only a or c can, so bound[b] becomes the lesser of
//        |   | x  |  b | y|             bound[a] + size of a and bound[c] + size of c.
//        +---+----+----+--+--> section
//
// The search is cut down by:
//
// - sections: the open blocks of a section are disjoint, so the ones from any `bound` on, stacked,
//   must end within the capacity;
// - dominance: if nothing open can get below the top of an item, it need not be pushed up at all;
// - decomposition: where no open item crosses between two sections, both sides are solved apart,
// and
//   the failure of one side undoes nothing of the other;
// - memory: what is left to place fails again in the state in which it failed before, also in the
//   search of another order.
//
// Rigid groups can interlock so that of a ring of items each is below the next.  Then nothing is
// safe to place, the search goes on as well as it can, and running out of choices no longer proves
// anything.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_SEARCH_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_SEARCH_H_

#include <cstdint>
#include <vector>

#include "budget.h"
#include "failures.h"
#include "problem/geometry.h"
#include "problem/instance.h"
#include "search/orders.h"

namespace mxplan::planner {

// Chooses the first to be placed of several items that could stand equally low.
enum class Tie {
  kOrder,     // the first in the order
  kTightest,  // the one in the section with the fewest bytes to spare
  kLoaded,    // the one in the section that was open for most bytes when its component was made
};

// The ending of a search.
enum class Verdict {
  kFound,       // found a plan
  kImpossible,  // there is no plan of this height
  kUnknown,     // no plan found, which proves nothing
};

struct Outcome {
  Verdict verdict;
  Bases bases;  // empty if no plan was found
};

class Search {
 public:
  // The arguments outlive the search.  `failures` are those of this height.
  Search(const Instance& instance, const Geometry& geometry, const Order& order, Tie tie,
         int64_t capacity, Failures* failures);

  // Searches until a plan is found, the choices or `max_nodes` run out, or the budget.
  Outcome Run(int64_t max_nodes, Budget* budget);

 private:
  // Open items that meet, if only through others: a range of items_.
  struct Component {
    int32_t begin;
    int32_t end;
  };
  // A task to solve: a component, then the rest of the agenda.
  struct Task {
    Component component;
    int32_t parent;  // the choice that made it, -1 for none
    int32_t rest;    // the next task, -1 for none
    StateKey entry;  // the state in which the component was met first, before items were pushed up
  };
  // An item was placed; what to return to if that turns out to be wrong.
  struct Choice {
    Task task;
    int32_t item;
    bool dominant;
    size_t changes;  // how many there were before
    size_t tasks;
    StateKey state;
  };
  struct Change {
    int64_t* place;
    int64_t value;
  };

  // Instead of a task.
  static constexpr int32_t kDone = -1;
  static constexpr int32_t kFailed = -2;

  static size_t At(int32_t number) { return static_cast<size_t>(number); }

  int32_t Choose(Component component);
  bool IsSafe(int32_t item) const;
  bool IsDominant(int32_t item) const;
  int64_t Urgency(int32_t item) const;
  int64_t LeastSpare(int32_t item) const;
  int64_t MostLoad(int32_t item) const;
  bool Place(Component component, int32_t item);
  bool PushUp(Component component, int32_t item);
  int32_t Split(Component component, int32_t item, int32_t here, int32_t rest);
  int32_t Backtrack(int32_t failed);
  void Undo(size_t mark);
  void Close(int32_t item);
  void Reopen(int32_t item);
  void Count(int32_t item, int32_t sign);
  void Set(int64_t* place, int64_t value) {
    changes_.push_back({place, *place});
    *place = value;
  }
  StateKey StateOf(Component component) const;
  int32_t AddTask(const Task& task);

  // Of propagate.cc.
  int64_t PushedBound(int32_t item);
  void Raise(int32_t item, int64_t bound);
  bool Propagate(Component component);
  bool RaiseWaiting();
  void RaiseAtOnce();
  bool RaisedSectionsFit();
  bool SectionFits(size_t section);

  const Instance& instance_;
  const Geometry& geometry_;
  const Tie tie_;
  const int64_t capacity_;
  Failures* const failures_;
  bool proof_ = true;

  // By item.
  std::vector<int32_t> rank_;
  std::vector<int64_t> last_base_, least_, bound_, pusher_touched_, reached_;
  std::vector<int64_t> most_load_;  // in a section of the item, when its component was made
  std::vector<int32_t> pusher_;
  std::vector<char> open_, raised_;
  bool all_plain_ = true;

  // By section: open bytes, items open across its begin, blocks that begin with it and end with it,
  // and the highest begin of a block that was raised, -1 for none.
  std::vector<int64_t> load_, level_;
  std::vector<int32_t> crossing_, begins_, ends_;
  std::vector<Piece> pieces_;  // as geometry.pieces, each section in the order of its last check

  std::vector<int32_t> items_;  // components are ranges of it
  std::vector<Change> changes_;
  std::vector<Choice> choices_;
  std::vector<Task> tasks_;

  // Room that functions work in.
  std::vector<int32_t> raised_items_, sections_, waiting_, parted_, cuts_;
};

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_SEARCH_H_
