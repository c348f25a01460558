#include "search/quick_plans.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <vector>

#include "problem/timeline.h"

namespace mxplan::planner {
namespace {

// Bases that an item cannot have, between two numbers that it can.
struct Forbidden {
  int64_t begin;
  int64_t end;

  bool operator<(const Forbidden& other) const {
    return begin != other.begin ? begin < other.begin : end < other.end;
  }
};

// The lowest gap between `forbidden`, which is sorted, or the tightest one.
int64_t ChooseBase(const std::vector<Forbidden>& forbidden, int64_t alignment, bool best) {
  int64_t floor = 0, found = -1, least_room = kFar;
  for (const Forbidden& span : forbidden) {
    const int64_t base = AlignUp(floor, alignment);
    const int64_t room = span.begin - base;
    if (room >= 0) {
      if (!best) return base;
      if (room < least_room) {
        least_room = room;
        found = base;
      }
    }
    floor = std::max(floor, span.end);
  }
  return found >= 0 ? found : AlignUp(floor, alignment);
}

Bases Fit(const Instance& instance, const Order& order, bool best) {
  const std::vector<Block>& blocks = instance.shapes.values();
  Timeline placed(instance);
  std::vector<int64_t> base_of(blocks.size());  // by block, the base of its item
  std::vector<Forbidden> forbidden;
  Bases bases(instance.size());
  for (const int32_t number : order) {
    const auto item = static_cast<size_t>(number);
    forbidden.clear();
    for (const Block& block : instance.shapes[item]) {
      placed.ForEach(block.first, block.last, [&](size_t other) {
        forbidden.push_back({base_of[other] + blocks[other].low - block.high,
                             base_of[other] + blocks[other].high - block.low});
      });
    }
    std::sort(forbidden.begin(), forbidden.end());
    bases[item] = ChooseBase(forbidden, instance.alignment[item], best);
    const size_t head = instance.shapes.head(item);
    for (size_t at = head; at < head + instance.shapes[item].size(); ++at) {
      base_of[at] = bases[item];
      placed.Add(at);
    }
  }
  return bases;
}

}  // namespace

Bases FirstFit(const Instance& instance, const Order& order) {
  return Fit(instance, order, /*best=*/false);
}

Bases BestFit(const Instance& instance, const Order& order) {
  return Fit(instance, order, /*best=*/true);
}

Bases Skyline(const Instance& instance, const Order& order) {
  using Candidate = std::tuple<int64_t, int32_t, int32_t>;  // base, rank, item
  const std::vector<Block>& blocks = instance.shapes.values();
  Timeline open(instance);
  std::vector<int32_t> owner(blocks.size()), rank(instance.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>> queue;
  for (size_t at = 0; at < order.size(); ++at) {
    const auto item = static_cast<size_t>(order[at]);
    rank[item] = static_cast<int32_t>(at);
    queue.emplace(0, rank[item], order[at]);
    const size_t head = instance.shapes.head(item);
    for (size_t block = head; block < head + instance.shapes[item].size(); ++block) {
      owner[block] = order[at];
      open.Add(block);
    }
  }
  std::vector<char> done(instance.size());
  Bases bases(instance.size());
  while (!queue.empty()) {
    const auto [base, place, number] = queue.top();
    queue.pop();
    const auto item = static_cast<size_t>(number);
    if (done[item] || base < bases[item]) continue;  // an entry from before the item was raised
    done[item] = 1;
    const size_t head = instance.shapes.head(item);
    for (size_t at = head; at < head + instance.shapes[item].size(); ++at) open.Remove(at);
    for (const Block& block : instance.shapes[item]) {
      open.ForEach(block.first, block.last, [&, top = base + block.high](size_t other) {
        const auto raised = static_cast<size_t>(owner[other]);
        const int64_t need = AlignUp(top - blocks[other].low, instance.alignment[raised]);
        if (need > bases[raised]) {
          bases[raised] = need;
          queue.emplace(need, rank[raised], owner[other]);
        }
      });
    }
  }
  return bases;
}

Bases Settle(const Instance& instance, const Bases& bases) {
  Order order(bases.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return bases[static_cast<size_t>(a)] < bases[static_cast<size_t>(b)];
  });
  return FirstFit(instance, order);
}

}  // namespace mxplan::planner
