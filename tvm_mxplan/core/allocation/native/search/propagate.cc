// The part of the search that raises bounds: what follows from a placement for open items.
#include <algorithm>

#include "search/search.h"

namespace mxplan::planner {
namespace {

// Rounds in which bounds are raised one after the other; usually one or two do.
constexpr int kRounds = 4;

}  // namespace

// Least base on top of an open item, kFar if there is no open item around.
int64_t Search::PushedBound(int32_t item) {
  int64_t least = kFar;
  for (const Neighbour& other : geometry_.around[At(item)]) {
    if (open_[At(other.item)] && bound_[At(other.item)] + other.touched < least) {
      least = bound_[At(other.item)] + other.touched;
      pusher_[At(item)] = other.item;
      pusher_touched_[At(item)] = other.touched;
    }
  }
  return least == kFar ? kFar : AlignUp(least, instance_.alignment[At(item)]);
}

void Search::Raise(int32_t item, int64_t bound) {
  Set(&bound_[At(item)], bound);
  if (!raised_[At(item)]) raised_items_.push_back(item);
  raised_[At(item)] = 1;
}

// Raises the bounds that depend on raised ones; false if something has no room left.
bool Search::Propagate(Component component) {
  waiting_.clear();
  for (int32_t at = component.begin; at < component.end; ++at) {
    const int32_t item = items_[At(at)];
    if (open_[At(item)] && least_[At(item)] < bound_[At(item)]) waiting_.push_back(item);
  }
  bool fits = RaiseWaiting();
  for (const int32_t item : raised_items_) fits = fits && bound_[At(item)] <= last_base_[At(item)];
  fits = fits && RaisedSectionsFit();
  for (const int32_t item : raised_items_) raised_[At(item)] = 0;
  raised_items_.clear();
  return fits;
}

// Raises the bounds of waiting items until each stands on something; false if one has no room.
bool Search::RaiseWaiting() {
  bool again = !waiting_.empty();
  for (int round = 0; again; ++round) {
    if (round == kRounds && all_plain_) RaiseAtOnce();
    again = false;
    for (const int32_t item : waiting_) {
      const int32_t pusher = pusher_[At(item)];
      if (open_[At(pusher)] && bound_[At(pusher)] + pusher_touched_[At(item)] <= bound_[At(item)]) {
        continue;
      }
      const int64_t need = PushedBound(item);
      if (need > last_base_[At(item)]) return false;
      if (need > bound_[At(item)]) {
        Raise(item, need);
        again = true;
      }
    }
  }
  return true;
}

// Raises the bounds of waiting items to where raising them in turns would end.  Items that wait for
// each other push each other up a little in each turn, up to where one of them stands on an item
// that does not wait: the shortest paths from those are found from above, in as many turns as the
// longest of them has items.
void Search::RaiseAtOnce() {
  for (const int32_t item : waiting_) reached_[At(item)] = kFar;
  for (bool again = true; again;) {
    again = false;
    for (const int32_t item : waiting_) {
      int64_t least = kFar;
      for (const Neighbour& other : geometry_.around[At(item)]) {
        const size_t at = At(other.item);
        if (!open_[at]) continue;
        const int64_t base = least_[at] < bound_[at] ? reached_[at] : bound_[at];
        if (base < kFar) least = std::min(least, base + other.touched);
      }
      if (least == kFar) continue;
      least = std::max(bound_[At(item)], AlignUp(least, instance_.alignment[At(item)]));
      if (least >= reached_[At(item)]) continue;
      reached_[At(item)] = least;
      again = true;
    }
  }
  for (const int32_t item : waiting_) {
    if (reached_[At(item)] > bound_[At(item)]) Raise(item, reached_[At(item)]);
  }
}

// True if in each section of a raised item the open blocks from any bound on, stacked, end in the
// capacity.
bool Search::RaisedSectionsFit() {
  sections_.clear();
  for (const int32_t item : raised_items_) {
    const int64_t level = bound_[At(item)] + geometry_.levels[At(item)];
    for (const Load& load : geometry_.loads[At(item)]) {
      const size_t section = At(load.section);
      // Blocks above the raised ones are as they were.
      if (level_[section] < 0) sections_.push_back(load.section);
      level_[section] = std::max(level_[section], level);
    }
  }
  bool fits = true;
  for (const int32_t number : sections_) {
    const size_t section = At(number);
    const int64_t level = level_[section];
    level_[section] = -1;
    if (!fits || level + load_[section] <= capacity_) continue;
    // A neighbouring section may hold all of this one's open blocks; it is raised, too.
    const bool in_next = number + 1 < instance_.sections && ends_[section + 1] == 0;
    const bool in_last = number > 0 && begins_[section] == 0 && ends_[section] > 0;
    if (!in_next && !in_last) fits = SectionFits(section);
  }
  return fits;
}

bool Search::SectionFits(size_t section) {
  Piece* pieces = pieces_.data() + geometry_.pieces.head(section);
  const size_t count = geometry_.pieces[section].size();
  const auto begin_of = [&](const Piece& piece) { return bound_[At(piece.item)] + piece.low; };
  // Highest first; nearly in order since the last time.
  for (size_t at = 1; at < count; ++at) {
    const Piece piece = pieces[at];
    const int64_t begin = begin_of(piece);
    size_t to = at;
    for (; to > 0 && begin_of(pieces[to - 1]) < begin; --to) pieces[to] = pieces[to - 1];
    if (to < at) pieces[to] = piece;
  }
  int64_t left = capacity_, saved = 0;
  for (size_t at = 0; at < count; ++at) {
    const Piece& piece = pieces[at];
    if (!open_[At(piece.item)]) continue;
    left -= piece.size;
    saved = std::max(saved, piece.spare);
    if (begin_of(piece) > left + saved) return false;
  }
  return true;
}

}  // namespace mxplan::planner
