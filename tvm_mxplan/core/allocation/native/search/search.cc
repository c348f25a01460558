#include "search/search.h"

#include <algorithm>
#include <numeric>

namespace mxplan::planner {

Search::Search(const Instance& instance, const Geometry& geometry, const Order& order, Tie tie,
               int64_t capacity, Failures* failures)
    : instance_(instance),
      geometry_(geometry),
      tie_(tie),
      capacity_(capacity),
      failures_(failures),
      items_(order) {
  const size_t count = instance.size(), sections = At(instance.sections);
  rank_.resize(count);
  for (size_t rank = 0; rank < count; ++rank) rank_[At(order[rank])] = static_cast<int32_t>(rank);
  for (size_t item = 0; item < count; ++item)
    last_base_.push_back(capacity - instance.extent[item]);
  least_.resize(count);
  bound_.resize(count);
  pusher_.resize(count);
  pusher_touched_.resize(count);
  reached_.resize(count);
  open_.resize(count);
  raised_.resize(count);
  load_.resize(sections);
  level_.assign(sections, -1);
  crossing_.resize(sections + 1);
  begins_.resize(sections + 1);
  ends_.resize(sections + 1);
  pieces_ = geometry.pieces.values();
  for (size_t item = 0; item < count; ++item) {
    Reopen(static_cast<int32_t>(item));
    all_plain_ = all_plain_ && geometry.plain[item] != 0;
  }
  for (size_t item = 0; item < count; ++item) {
    most_load_.push_back(MostLoad(static_cast<int32_t>(item)));
  }
}

Outcome Search::Run(int64_t max_nodes, Budget* budget) {
  if (*std::min_element(last_base_.begin(), last_base_.end()) < 0)
    return {Verdict::kImpossible, {}};
  for (size_t section = 0; section < load_.size(); ++section) {
    if (!SectionFits(section)) return {Verdict::kImpossible, {}};
  }
  int32_t current = AddTask({{0, static_cast<int32_t>(items_.size())}, -1, -1, {}});
  const int64_t before = budget->spent();
  while (current >= 0) {
    const Task task = tasks_[At(current)];
    const int32_t item = Choose(task.component);
    const StateKey state = StateOf(task.component);
    if (item < 0 || failures_->Has(state)) {
      if (proof_ && !(task.entry == StateKey())) failures_->Add(task.entry);
      current = Backtrack(task.parent);
    } else if (budget->spent() - before >= max_nodes || budget->Over()) {
      return {Verdict::kUnknown, {}};
    } else {
      budget->Spend(task.component.end - task.component.begin);
      const auto here = static_cast<int32_t>(choices_.size());
      choices_.push_back({task, item, IsDominant(item), changes_.size(), tasks_.size(), state});
      current = Place(task.component, item) ? Split(task.component, item, here, task.rest)
                                            : Backtrack(here);
    }
    if (current == kFailed) return {proof_ ? Verdict::kImpossible : Verdict::kUnknown, {}};
  }
  return {Verdict::kFound, least_};
}

// The next item to place, -1 if each of them waits for another one to push it up.
int32_t Search::Choose(Component component) {
  const int32_t* begin = items_.data() + component.begin;
  const int32_t* end = items_.data() + component.end;
  int64_t lowest = kFar;
  for (const int32_t* item = begin; item != end; ++item) {
    lowest = std::min(lowest, bound_[At(*item)]);
  }
  int32_t chosen = -1;
  int64_t most = -kFar;
  for (const int32_t* at = begin; at != end; ++at) {
    const int32_t item = *at;
    if (bound_[At(item)] != lowest || least_[At(item)] != lowest) continue;
    if (tie_ == Tie::kOrder && chosen >= 0 && rank_[At(chosen)] < rank_[At(item)]) continue;
    if (geometry_.plain[At(item)] == 0 && !IsSafe(item)) continue;
    const int64_t urgency = Urgency(item);
    if (chosen < 0 || urgency > most || (urgency == most && rank_[At(item)] < rank_[At(chosen)])) {
      chosen = item;
      most = urgency;
    }
  }
  if (chosen >= 0 || all_plain_) return chosen;
  // Higher ones, the lowest and first of them that is safe; if none is, any will have to do.
  int32_t any = -1;
  const auto before = [&](int32_t a, int32_t b) {
    return bound_[At(a)] != bound_[At(b)] ? bound_[At(a)] < bound_[At(b)]
                                          : rank_[At(a)] < rank_[At(b)];
  };
  for (const int32_t* at = begin; at != end; ++at) {
    if (bound_[At(*at)] != least_[At(*at)]) continue;
    if (any < 0 || before(*at, any)) any = *at;
    if ((chosen < 0 || before(*at, chosen)) && IsSafe(*at)) chosen = *at;
  }
  if (chosen < 0 && any >= 0) proof_ = false;
  return chosen >= 0 ? chosen : any;
}

// True if no open item can still get below this one, if it is placed at its least base.
bool Search::IsSafe(int32_t item) const {
  const int64_t base = least_[At(item)];
  for (const Neighbour& other : geometry_.around[At(item)]) {
    if (open_[At(other.item)] && bound_[At(other.item)] + other.touched <= base) return false;
  }
  return true;
}

// True if no open item can get below the top of this one, so that nothing is gained by waiting.
bool Search::IsDominant(int32_t item) const {
  const int64_t base = least_[At(item)];
  for (const Neighbour& other : geometry_.around[At(item)]) {
    if (open_[At(other.item)] && bound_[At(other.item)] < base + other.above) return false;
  }
  return true;
}

// The measure by which the tie picks one of several items that could stand equally low.
int64_t Search::Urgency(int32_t item) const {
  switch (tie_) {
    case Tie::kTightest:
      return -LeastSpare(item);
    case Tie::kLoaded:
      return most_load_[At(item)];
    case Tie::kOrder:
      break;
  }
  return 0;
}

// Open bytes of the section of an item that has most of them.
int64_t Search::MostLoad(int32_t item) const {
  int64_t most = 0;
  for (const Load& load : geometry_.loads[At(item)]) {
    most = std::max(most, load_[At(load.section)]);
  }
  return most;
}

// Bytes to spare in the tightest section of an item that has the lowest bound, if all that is open
// is stacked there; less a number that is the same for all.
int64_t Search::LeastSpare(int32_t item) const {
  int64_t least = kFar;
  for (const Load& load : geometry_.loads[At(item)]) {
    const size_t section = At(load.section);
    int64_t floor = bound_[At(item)];
    if (instance_.rigid) {
      floor = kFar;
      for (const Piece& piece : geometry_.pieces[section]) {
        if (open_[At(piece.item)]) floor = std::min(floor, bound_[At(piece.item)] + piece.low);
      }
    }
    least = std::min(least, -floor - load_[section]);
  }
  return least;
}

// Places the item at its least base; false if that leaves too little room for the others.
bool Search::Place(Component component, int32_t item) {
  const int64_t base = least_[At(item)];
  Close(item);
  for (const Neighbour& other : geometry_.around[At(item)]) {
    const size_t at = At(other.item);
    if (!open_[at] || least_[at] >= base + other.above) continue;
    const int64_t need = AlignUp(base + other.above, instance_.alignment[at]);
    if (need > last_base_[at]) {
      for (const int32_t raised : raised_items_) raised_[At(raised)] = 0;
      raised_items_.clear();
      return false;
    }
    Set(&least_[at], need);
    if (bound_[at] < need) Raise(other.item, need);
  }
  return Propagate(component);
}

// Notes that the item does not stand at its least base; false if nothing can push it up.
bool Search::PushUp(Component component, int32_t item) {
  const int64_t pushed = PushedBound(item);
  if (pushed > last_base_[At(item)]) return false;
  const int64_t next = AlignUp(least_[At(item)] + 1, instance_.alignment[At(item)]);
  Raise(item, std::max(pushed, next));
  return Propagate(component);
}

// Splits the rest of the component where no open item crosses; the smallest part comes first.
int32_t Search::Split(Component component, int32_t item, int32_t here, int32_t rest) {
  int32_t* begin = items_.data() + component.begin;
  int32_t* end = items_.data() + component.end;
  std::iter_swap(std::find(begin, end, item), end - 1);
  const Component remaining{component.begin, component.end - 1};
  --end;
  if (begin == end) return rest >= 0 ? rest : kDone;
  cuts_.clear();
  for (int32_t s = instance_.first[At(item)] + 1; s < instance_.last[At(item)]; ++s) {
    if (crossing_[At(s)] == 0) cuts_.push_back(s);
  }
  if (cuts_.empty()) return AddTask({remaining, here, rest, {}});
  const auto part_of = [&](int32_t of) {
    return std::upper_bound(cuts_.begin(), cuts_.end(), instance_.first[At(of)]) - cuts_.begin();
  };
  std::sort(begin, end, [&](int32_t a, int32_t b) {
    return part_of(a) != part_of(b) ? part_of(a) < part_of(b) : rank_[At(a)] < rank_[At(b)];
  });
  std::vector<Component> parts;
  for (int32_t at = remaining.begin; at < remaining.end; ++at) {
    if (tie_ == Tie::kLoaded) Set(&most_load_[At(items_[At(at)])], MostLoad(items_[At(at)]));
    const bool same =
        at > remaining.begin && part_of(items_[At(at)]) == part_of(items_[At(at - 1)]);
    if (!same) parts.push_back({at, at});
    ++parts.back().end;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Component& a, const Component& b) {
    return a.end - a.begin > b.end - b.begin;
  });
  for (const Component& part : parts) rest = AddTask({part, here, rest, {}});
  return rest;
}

// Undoes the choice `failed` and all after it, and turns it round; kFailed if none is left.
int32_t Search::Backtrack(int32_t failed) {
  while (failed >= 0) {
    const Choice choice = choices_[At(failed)];
    for (size_t at = At(failed); at < choices_.size(); ++at) Reopen(choices_[at].item);
    choices_.resize(At(failed));
    tasks_.resize(choice.tasks);
    Undo(choice.changes);
    const Task& task = choice.task;
    const StateKey entry = task.entry == StateKey() ? choice.state : task.entry;
    if (!choice.dominant && PushUp(task.component, choice.item)) {
      return AddTask({task.component, task.parent, task.rest, entry});
    }
    if (proof_) {
      failures_->Add(choice.state);
      failures_->Add(entry);
    }
    failed = task.parent;
  }
  return kFailed;
}

void Search::Undo(size_t mark) {
  while (changes_.size() > mark) {
    *changes_.back().place = changes_.back().value;
    changes_.pop_back();
  }
}

void Search::Close(int32_t item) { Count(item, -1); }

void Search::Reopen(int32_t item) { Count(item, 1); }

void Search::Count(int32_t item, int32_t sign) {
  open_[At(item)] = sign > 0;
  for (const Load& load : geometry_.loads[At(item)]) load_[At(load.section)] += sign * load.bytes;
  for (const Block& block : instance_.shapes[At(item)]) {
    begins_[At(block.first)] += sign;
    ends_[At(block.last)] += sign;
  }
  for (int32_t s = instance_.first[At(item)] + 1; s < instance_.last[At(item)]; ++s) {
    crossing_[At(s)] += sign;
  }
}

StateKey Search::StateOf(Component component) const {
  StateKey key;
  key.Add(~uint64_t{0}, static_cast<uint64_t>(capacity_), 0);
  for (int32_t at = component.begin; at < component.end; ++at) {
    const size_t item = At(items_[At(at)]);
    // Of an item that is pushed up the least base says nothing more.
    key.Add(item, static_cast<uint64_t>(bound_[item]), least_[item] < bound_[item]);
  }
  return key;
}

int32_t Search::AddTask(const Task& task) {
  tasks_.push_back(task);
  return static_cast<int32_t>(tasks_.size()) - 1;
}

}  // namespace mxplan::planner
