// Quick plans: an order of the items, and three ways to place the next one.
//
// - first fit: into the lowest gap that takes the item;
// - best fit: into the gap that leaves the fewest bytes over it, on top of all if there is none;
// - skyline: nothing goes below what is placed; of all items the one that can stand lowest is next,
//   and the order breaks ties.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_QUICK_PLANS_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_QUICK_PLANS_H_

#include <cstdint>

#include "problem/instance.h"
#include "search/orders.h"

namespace mxplan::planner {

Bases FirstFit(const Instance& instance, const Order& order);
Bases BestFit(const Instance& instance, const Order& order);
Bases Skyline(const Instance& instance, const Order& order);

// Lets every item, from the lowest to the highest, fall into the lowest gap it can reach.
Bases Settle(const Instance& instance, const Bases& bases);

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_QUICK_PLANS_H_
