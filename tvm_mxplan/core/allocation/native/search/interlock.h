// An exact search for few rigid groups, which may interlock: it decides how each pair stands.
//
// For two items the base of one less the base of the other lies in one of a few zones.  Each item
// has a least and a greatest base.  A decision for a pair narrows both, these narrow others, and
// zones that are no longer in reach are struck out.  When every pair has one zone left, the least
// bases are a plan.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_INTERLOCK_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_INTERLOCK_H_

#include "budget.h"
#include "problem/geometry.h"
#include "problem/instance.h"
#include "search/search.h"

namespace mxplan::planner {

// Searches for a plan of at most `capacity` bytes; meant for a few dozen items at most.
Outcome SearchZones(const Instance& instance, const Geometry& geometry, int64_t capacity,
                    int64_t max_nodes, Budget* budget);

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_SEARCH_INTERLOCK_H_
