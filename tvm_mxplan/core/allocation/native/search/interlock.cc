#include "search/interlock.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace mxplan::planner {
namespace {

// Rounds of narrowing after which a state is taken as it is; rings of items may narrow byte by
// byte.
constexpr int kMaxRounds = 1000;

struct Pair {
  size_t x;
  size_t y;
  std::vector<Zone> zones;  // all of them
};

// Zones of a pair that are still possible: a range, as only the outer ones are ever struck out or
// all but one.
struct Possible {
  int32_t begin;
  int32_t end;
};

struct State {
  Bases least;
  Bases most;
  std::vector<Possible> possible;  // by pair
};

// The result of narrowing a state.
enum class Narrowed { kSettled, kRough, kNothingLeft };

class ZoneSearch {
 public:
  ZoneSearch(const Instance& instance, const Geometry& geometry, int64_t capacity)
      : instance_(instance), geometry_(geometry), capacity_(capacity) {
    for (size_t x = 0; x < instance.size(); ++x) {
      for (const Neighbour& other : geometry.around[x]) {
        const auto y = static_cast<size_t>(other.item);
        if (x < y) pairs_.push_back({x, y, ZonesOf(instance.shapes[x], instance.shapes[y])});
      }
    }
  }

  Outcome Run(int64_t max_nodes, Budget* budget) {
    State start{Bases(instance_.size()), {}, {}};
    for (size_t item = 0; item < instance_.size(); ++item) {
      start.most.push_back(
          AlignDown(capacity_ - instance_.extent[item], instance_.alignment[item]));
    }
    for (const Pair& pair : pairs_) {
      start.possible.push_back({0, static_cast<int32_t>(pair.zones.size())});
    }
    std::vector<State> stack{std::move(start)};
    bool proof = true;
    for (int64_t nodes = 0; !stack.empty(); ++nodes) {
      if (nodes >= max_nodes || budget->Over()) return {Verdict::kUnknown, {}};
      budget->Spend(0);
      State state = std::move(stack.back());
      stack.pop_back();
      const Narrowed narrowed = Narrow(&state);
      if (narrowed == Narrowed::kNothingLeft) continue;
      const size_t pair = Widest(state);
      if (pair < pairs_.size()) {
        Branch(state, pair, &stack);
      } else if (narrowed == Narrowed::kSettled) {
        return {Verdict::kFound, std::move(state.least)};
      } else {
        proof = false;
      }
    }
    return {proof ? Verdict::kImpossible : Verdict::kUnknown, {}};
  }

 private:
  // Narrows until nothing changes, or for long enough.
  Narrowed Narrow(State* state) const {
    Bases &least = state->least, &most = state->most;
    for (int round = 0; round < kMaxRounds; ++round) {
      bool changed = false;
      const auto raise = [&](int64_t* value, int64_t to) {
        changed = changed || to > *value;
        *value = std::max(*value, to);
      };
      const auto lower = [&](int64_t* value, int64_t to) {
        changed = changed || to < *value;
        *value = std::min(*value, to);
      };
      for (size_t at = 0; at < pairs_.size(); ++at) {
        const auto& [x, y, zones] = pairs_[at];
        Possible& possible = state->possible[at];
        const int64_t nearest = least[y] - most[x], farthest = most[y] - least[x];
        const auto zone = [&z = zones](int32_t number) { return z[static_cast<size_t>(number)]; };
        while (possible.begin < possible.end && zone(possible.begin).high < nearest) {
          ++possible.begin;
        }
        while (possible.begin < possible.end && zone(possible.end - 1).low > farthest) {
          --possible.end;
        }
        if (possible.begin == possible.end) return Narrowed::kNothingLeft;
        const int64_t low = zone(possible.begin).low, high = zone(possible.end - 1).high;
        const int64_t align_x = instance_.alignment[x], align_y = instance_.alignment[y];
        raise(&least[y], AlignUp(least[x] + low, align_y));
        raise(&least[x], AlignUp(least[y] - high, align_x));
        lower(&most[y], AlignDown(most[x] + high, align_y));
        lower(&most[x], AlignDown(most[y] - low, align_x));
      }
      for (size_t item = 0; item < least.size(); ++item) {
        if (least[item] > most[item]) return Narrowed::kNothingLeft;
      }
      if (!changed) return Overflows(least) ? Narrowed::kNothingLeft : Narrowed::kSettled;
    }
    return Narrowed::kRough;
  }

  // True if the blocks of some section from some level on, stacked, end beyond the capacity.
  bool Overflows(const Bases& least) const {
    std::vector<Piece> pieces;
    const auto begin_of = [&](const Piece& piece) {
      return least[static_cast<size_t>(piece.item)] + piece.low;
    };
    for (size_t section = 0; section < geometry_.pieces.rows(); ++section) {
      const Row<Piece> row = geometry_.pieces[section];
      pieces.assign(row.begin(), row.end());
      std::sort(pieces.begin(), pieces.end(),
                [&](const Piece& a, const Piece& b) { return begin_of(a) > begin_of(b); });
      int64_t left = capacity_, saved = 0;
      for (const Piece& piece : pieces) {
        left -= piece.size;
        saved = std::max(saved, piece.spare);
        if (begin_of(piece) > left + saved) return true;
      }
    }
    return false;
  }

  // The growth of the least bases if the pair stands in the zone.
  int64_t Growth(const State& state, const Pair& pair, int32_t number) const {
    const Zone& zone = pair.zones[static_cast<size_t>(number)];
    const int64_t x = state.least[pair.x], y = state.least[pair.y];
    return std::max({int64_t{0}, x + zone.low - y, y - zone.high - x});
  }

  // The undecided pair that any decision raises most, or the number of pairs if all are decided.
  size_t Widest(const State& state) const {
    int64_t best = -1;
    size_t found = pairs_.size();
    for (size_t at = 0; at < pairs_.size(); ++at) {
      const Possible& possible = state.possible[at];
      if (possible.end - possible.begin < 2) continue;
      int64_t gain = kFar;
      for (int32_t zone = possible.begin; zone < possible.end; ++zone) {
        gain = std::min(gain, Growth(state, pairs_[at], zone));
      }
      if (gain > best) {
        best = gain;
        found = at;
      }
    }
    return found;
  }

  // Pushes a state for each zone of the pair; the last one leaves the items lowest.
  void Branch(const State& state, size_t pair, std::vector<State>* stack) const {
    std::vector<int32_t> zones;
    for (int32_t zone = state.possible[pair].begin; zone < state.possible[pair].end; ++zone) {
      zones.push_back(zone);
    }
    std::stable_sort(zones.begin(), zones.end(), [&](int32_t a, int32_t b) {
      return Growth(state, pairs_[pair], a) > Growth(state, pairs_[pair], b);
    });
    for (const int32_t zone : zones) {
      stack->push_back(state);
      stack->back().possible[pair] = {zone, zone + 1};
    }
  }

  const Instance& instance_;
  const Geometry& geometry_;
  const int64_t capacity_;
  std::vector<Pair> pairs_;
};

}  // namespace

Outcome SearchZones(const Instance& instance, const Geometry& geometry, int64_t capacity,
                    int64_t max_nodes, Budget* budget) {
  return ZoneSearch(instance, geometry, capacity).Run(max_nodes, budget);
}

}  // namespace mxplan::planner
