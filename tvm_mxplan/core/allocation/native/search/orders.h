// Orders in which items are worth placing: big ones first, for several meanings of big.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_ORDERS_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_ORDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "problem/instance.h"

namespace mxplan::planner {

using Order = std::vector<int32_t>;  // a permutation of the items

// The measures by which orders compare items.
class Measures {
 public:
  explicit Measures(const Instance& instance);

  // Each letter of a recipe is one measure, the higher the earlier; further letters break ties.
  // T total load around the item, A area, S size, W duration, C conflicts, B begin, E end.
  // `blur`, if not empty, multiplies the first measure of each item.
  Order By(const std::string& recipe, const std::vector<double>& blur = {}) const;

  // The different orders that the recipes give.
  std::vector<Order> All() const;

  // Pairs of items whose lives meet.
  int64_t conflicts() const;

 private:
  const std::vector<int64_t>& Column(char letter) const;

  std::vector<int64_t> total_, area_, size_, duration_, conflicts_, begin_, end_;
};

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_ORDERS_H_
