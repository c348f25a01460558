#include "search/race.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "search/interlock.h"

namespace mxplan::planner {
namespace {

// The shortest attempts: nodes for each item, and nodes however few the items.
constexpr int64_t kNodesPerItem = 4;
constexpr int64_t kLeastNodes = 500;
// Beyond this many items nothing is proven about groups that interlock.
constexpr size_t kMaxInterlocked = 64;
constexpr size_t kFailureBits = 18;

struct Way {
  const char* recipe;
  Tie tie;
};

// The more different they are the better: of most problems some of these make short work, and
// hardly ever the same ones.
constexpr Way kWays[] = {
    {"W", Tie::kTightest}, {"A", Tie::kTightest}, {"S", Tie::kTightest}, {"TWA", Tie::kOrder},
    {"WAT", Tie::kOrder},  {"C", Tie::kTightest}, {"A", Tie::kOrder},    {"B", Tie::kTightest},
    {"B", Tie::kOrder},    {"TAW", Tie::kOrder},  {"S", Tie::kLoaded},   {"WAT", Tie::kLoaded},
    {"A", Tie::kLoaded},
};

// The most that chance may add to the first measure of a recipe, as a multiple of it.
constexpr double kBlurs[] = {0.3, 1, 3, 0.1};

// Nodes after which less than a grain is no longer worth a search.
constexpr int64_t kRaggedNodes = 20'000;

// Orders that a round adds to those of the round before.
constexpr size_t kMoreEachRound = 4;
// The length of an attempt with an order that is tried but once, in shortest attempts.
constexpr int64_t kOnce = 2;
// Placements that go to these, as a multiple of what the others of a round take.
constexpr int64_t kShare = 4;

struct Runner {
  Order order;
  Tie tie;
  int wins = 0;
};

// Makes ways a little random, each in turn and each of the blurs.
class Shuffler {
 public:
  Shuffler(const Measures& measures, size_t items) : measures_(measures), blur_(items) {}

  Runner Next() {
    const Way& way = kWays[made_ % std::size(kWays)];
    const double strength = kBlurs[made_ / std::size(kWays) % std::size(kBlurs)];
    ++made_;
    for (double& factor : blur_) {
      // The upper 53 bits as a fraction, the same with any standard library.
      factor = 1 + strength * static_cast<double>(dice_() >> 11) * 0x1p-53;
    }
    return {measures_.By(way.recipe, blur_), way.tie};
  }

 private:
  const Measures& measures_;
  std::vector<double> blur_;
  std::mt19937_64 dice_{1};
  size_t made_ = 0;
};

// 1/2, 1/4, 3/4, 1/8, 5/8, 3/8, 7/8, 1/16 and so on: evenly spread however many are taken.
double Fraction(uint64_t number) {
  double fraction = 0, weight = 0.5;
  for (; number > 0; number >>= 1, weight /= 2)
    fraction += weight * static_cast<double>(number & 1);
  return fraction;
}

}  // namespace

Race::Race(const Instance& instance, const Measures& measures, Bases bases, const Aim& aim,
           Budget* budget)
    : instance_(instance),
      measures_(measures),
      geometry_(instance),
      aim_(aim),
      budget_(budget),
      failures_(kFailureBits),
      bases_(std::move(bases)),
      height_(HeightOf(instance, bases_)),
      floor_(aim.floor) {}

void Race::Run() {
  const auto items = static_cast<int64_t>(instance_.size());
  const int64_t unit = std::max(kLeastNodes, kNodesPerItem * items);
  for (const int64_t height : {aim_.goal, aim_.capacity}) {
    const auto of_use = [&] { return floor_ <= height && height < height_ && !Over(); };
    for (const Way& way : kWays) {
      if (of_use()) Attempt(height, measures_.By(way.recipe), way.tie, unit);
    }
    if (of_use()) AttemptZones(height, unit);
  }
  std::vector<Runner> runners;
  for (const Way& way : kWays) runners.push_back({measures_.By(way.recipe), way.tie});
  Shuffler shuffler(measures_, instance_.size());
  for (int64_t limit = unit; !Over(); limit *= 2) {
    const int64_t begun = budget_->spent();
    // Those that won so far go first.
    std::stable_sort(runners.begin(), runners.end(),
                     [](const Runner& a, const Runner& b) { return a.wins > b.wins; });
    for (Runner& runner : runners) {
      // An order that was lucky may be so again.
      while (!Over() && Attempt(NextHeight(), runner.order, runner.tie, limit)) ++runner.wins;
    }
    const int64_t ended = budget_->spent();
    while (!Over() && budget_->spent() - ended < kShare * (ended - begun)) {
      Runner once = shuffler.Next();
      if (Attempt(NextHeight(), once.order, once.tie, kOnce * unit)) {
        runners.push_back({std::move(once.order), once.tie, 1});
      }
    }
    // A fifth of all placements, each time in one attempt.
    if (!Over()) AttemptZones(NextHeight(), unit + budget_->spent() / 4);
    for (size_t more = 0; more < kMoreEachRound; ++more) runners.push_back(shuffler.Next());
  }
}

// Whether there is anything to do.
bool Race::Over() {
  const bool fits = aim_.fit_only && height_ <= aim_.capacity;
  return fits || height_ <= aim_.goal || exhausted() || Ragged() || budget_->Expired() ||
         budget_->left() <= 0;
}

// Whether the best is but a part of a grain above the goal, and that was searched for long enough:
// where bounds leave the topmost item alone its last bytes, plans usually cannot.
bool Race::Ragged() const {
  return height_ - aim_.goal < geometry_.grain && (aim_.capacity < 0 || height_ <= aim_.capacity) &&
         budget_->spent() >= kRaggedNodes;
}

// A height from the floor to what would be better than the best.  Until the capacity is reached
// every other one is the capacity, and none is higher: a search for less is another search, and may
// find what the search for the capacity does not.
int64_t Race::NextHeight() {
  const bool fits = height_ <= aim_.capacity || aim_.capacity < floor_;
  if (!fits && (fitting_ = !fitting_)) return aim_.capacity;
  const int64_t top = fits ? height_ : aim_.capacity + geometry_.step;
  const int64_t lowest = std::max(floor_, aim_.goal);
  const double fraction = Fraction(++tried_);
  const auto drop = static_cast<int64_t>(static_cast<double>(top - lowest) * fraction);
  return std::max(lowest, top - std::max(geometry_.step, drop));
}

bool Race::Attempt(int64_t height, const Order& order, Tie tie, int64_t limit) {
  Search search(instance_, geometry_, order, tie, height, &failures_);
  return Note(height, search.Run(limit, budget_));
}

// Searches zones if groups may interlock, and are few.
void Race::AttemptZones(int64_t height, int64_t limit) {
  if (!instance_.rigid || instance_.size() > kMaxInterlocked) return;
  Note(height, SearchZones(instance_, geometry_, height, limit, budget_));
}

bool Race::Note(int64_t height, Outcome outcome) {
  if (outcome.verdict == Verdict::kFound) {
    bases_ = std::move(outcome.bases);
    height_ = HeightOf(instance_, bases_);
  } else if (outcome.verdict == Verdict::kImpossible) {
    floor_ = std::max(floor_, height + 1);
  }
  return outcome.verdict == Verdict::kFound;
}

}  // namespace mxplan::planner
