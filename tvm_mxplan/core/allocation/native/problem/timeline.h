// Finds the blocks of a set that meet a stretch of time, in time that goes with how many there are.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_TIMELINE_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_TIMELINE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "problem/instance.h"

namespace mxplan::planner {

// Blocks stand in the order of their begin; over them is a tree of the greatest end in the set, so
// that a search skips what is over before the stretch begins.
class Timeline {
 public:
  // Of all blocks of an instance, none of which is in the set.
  explicit Timeline(const Instance& instance);

  // `block` is an index into instance.shapes.values().
  void Add(size_t block) { Set(block, (*blocks_)[block].last); }
  void Remove(size_t block) { Set(block, 0); }

  // Calls visit(index of a block) for each block of the set that meets [first, last).
  template <typename Visit>
  void ForEach(int32_t first, int32_t last, Visit visit) const {
    const size_t count = begun_[static_cast<size_t>(last)];
    if (count > 0) Walk(1, 0, width_, count, first, visit);
  }

 private:
  void Set(size_t block, int32_t end);

  template <typename Visit>
  void Walk(size_t node, size_t begin, size_t width, size_t count, int32_t first,
            Visit& visit) const {
    if (begin >= count || ends_[node] <= first) return;
    if (width == 1) {
      visit(order_[begin]);
      return;
    }
    Walk(2 * node, begin, width / 2, count, first, visit);
    Walk(2 * node + 1, begin + width / 2, width / 2, count, first, visit);
  }

  const std::vector<Block>* blocks_;
  std::vector<size_t> order_;  // blocks by their begin
  std::vector<size_t> place_;  // of each block, in order_
  std::vector<size_t> begun_;  // by section: blocks that begin before it
  size_t width_ = 1;           // leaves of the tree
  std::vector<int32_t> ends_;  // the tree: greatest end below each node, 0 if none
};

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_TIMELINE_H_
