#include "planner.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "budget.h"
#include "failures.h"
#include "problem/geometry.h"
#include "problem/instance.h"
#include "search/interlock.h"
#include "search/orders.h"
#include "search/quick_plans.h"
#include "search/race.h"
#include "search/search.h"

namespace mxplan::planner {
namespace {

// Pairs of items that meet, over all quick plans together; beyond that there are four.
constexpr int64_t kQuickWork = 300'000'000;
// Numbers in the geometry of an instance beyond which the exact search would need too much memory.
constexpr int64_t kMaxGeometry = 8'000'000;
// States that a search on its own remembers.
constexpr size_t kFailureBits = 12;

Instance Read(const MxplanInstance& given) {
  return MakeInstance(given.items, given.heads, given.blocks, given.alignment, given.sections);
}

Budget BudgetOf(const MxplanRequest& request) {
  return Budget(request.max_nodes, request.seconds, request.stop);
}

// The best of several quick plans, in the order in which they usually help.
Bases QuickPlan(const Instance& instance, const Measures& measures, int64_t enough,
                Budget* budget) {
  Bases best;
  int64_t least = kFar;
  const auto keep = [&](Bases bases) {
    const int64_t height = HeightOf(instance, bases);
    if (height < least) {
      least = height;
      best = std::move(bases);
    }
  };
  const int64_t work = 2 * measures.conflicts() + 20 * static_cast<int64_t>(instance.size());
  int64_t plans = std::max<int64_t>(4, kQuickWork / work);
  for (const Order& order : measures.All()) {
    for (const auto place : {BestFit, FirstFit, Skyline}) {
      if (plans <= 0) return best;
      plans -= 2;
      Bases bases = place(instance, order);
      Bases settled = Settle(instance, bases);
      keep(std::move(bases));
      keep(std::move(settled));
      if (least <= enough || budget->Expired()) return best;
    }
  }
  return best;
}

MxplanAnswer Plan(const Instance& instance, const MxplanRequest& request, Bases* bases) {
  Budget budget = BudgetOf(request);
  const Measures measures(instance);
  const Aim aim{request.floor, request.goal, request.capacity, request.fit_only != 0};
  const int64_t enough = aim.fit_only ? std::max(aim.goal, aim.capacity) : aim.goal;
  *bases = QuickPlan(instance, measures, enough, &budget);
  const int64_t height = HeightOf(instance, *bases);
  if (height <= enough || budget.left() <= 0 || budget.Expired() ||
      GeometrySize(instance, measures.conflicts()) > kMaxGeometry) {
    return {height, height <= aim.floor, 0};
  }
  Race race(instance, measures, std::move(*bases), aim, &budget);
  race.Run();
  *bases = race.bases();
  return {race.height(), race.exhausted(), budget.spent()};
}

// The search that `order` and `tie` number.
Outcome SearchOnce(const Instance& instance, const MxplanRequest& request, int64_t order,
                   int64_t tie, Budget* budget) {
  const Geometry geometry(instance);
  if (order < 0) {
    return SearchZones(instance, geometry, request.capacity, request.max_nodes, budget);
  }
  const std::vector<Order> orders = Measures(instance).All();
  Failures failures(kFailureBits);
  Search search(instance, geometry, orders[static_cast<size_t>(order) % orders.size()],
                static_cast<Tie>(tie), request.capacity, &failures);
  return search.Run(request.max_nodes, budget);
}

}  // namespace
}  // namespace mxplan::planner

extern "C" {

#define MXPLAN_EXPORT __attribute__((visibility("default")))

MXPLAN_EXPORT int mxplan_plan(const MxplanInstance* instance, const MxplanRequest* request,
                              int64_t* bases, MxplanAnswer* answer) try {
  namespace planner = mxplan::planner;
  planner::Bases found;
  *answer = planner::Plan(planner::Read(*instance), *request, &found);
  std::copy(found.begin(), found.end(), bases);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

MXPLAN_EXPORT int mxplan_search(const MxplanInstance* instance, const MxplanRequest* request,
                                int64_t order, int64_t tie, int64_t* bases,
                                MxplanAnswer* answer) try {
  namespace planner = mxplan::planner;
  planner::Budget budget = planner::BudgetOf(*request);
  const planner::Instance read = planner::Read(*instance);
  const planner::Outcome outcome = planner::SearchOnce(read, *request, order, tie, &budget);
  std::copy(outcome.bases.begin(), outcome.bases.end(), bases);
  const bool found = outcome.verdict == planner::Verdict::kFound;
  *answer = {found ? planner::HeightOf(read, outcome.bases) : -1,
             outcome.verdict == planner::Verdict::kImpossible, budget.spent()};
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

}  // extern "C"
