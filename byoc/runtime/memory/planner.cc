// Greedy best-fit placement; see planner.h.
#include "memory/planner.h"

#include <algorithm>
#include <numeric>

#include "memory/buffer.h"

namespace mxplan {
namespace {

struct Interval {
  int64_t begin, end;
};

// Lowest offset of the tightest gap of at least `bytes` between `taken` (sorted by begin).
int64_t BestFit(const std::vector<Interval>& taken, int64_t bytes) {
  int64_t best = -1;
  int64_t best_gap = INT64_MAX;
  int64_t end = 0;
  for (const Interval& interval : taken) {
    int64_t gap = interval.begin - end;
    if (gap >= bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, interval.end);
  }
  return best >= 0 ? best : end;
}

}  // namespace

ArenaPlan PlanArena(const std::vector<ArenaItem>& items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return items[a].bytes > items[b].bytes; });
  ArenaPlan plan;
  plan.offsets.assign(items.size(), 0);
  std::vector<size_t> placed;
  for (size_t i : order) {
    std::vector<Interval> taken;
    for (size_t other : placed) {
      if (items[other].birth < items[i].death && items[i].birth < items[other].death) {
        taken.push_back({plan.offsets[other], plan.offsets[other] + AlignUp(items[other].bytes)});
      }
    }
    std::sort(taken.begin(), taken.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    int64_t bytes = AlignUp(items[i].bytes);
    plan.offsets[i] = BestFit(taken, bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + bytes);
    placed.push_back(i);
  }
  return plan;
}

}  // namespace mxplan
