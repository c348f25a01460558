#include "problem/timeline.h"

#include <numeric>

namespace mxplan::planner {

Timeline::Timeline(const Instance& instance) : blocks_(&instance.shapes.values()) {
  const size_t count = blocks_->size();
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return (*blocks_)[a].first < (*blocks_)[b].first; });
  place_.resize(count);
  begun_.assign(static_cast<size_t>(instance.sections) + 1, 0);
  for (size_t at = 0; at < count; ++at) {
    place_[order_[at]] = at;
    ++begun_[static_cast<size_t>((*blocks_)[order_[at]].first) + 1];
  }
  std::partial_sum(begun_.begin(), begun_.end(), begun_.begin());
  while (width_ < count) width_ *= 2;
  ends_.assign(2 * width_, 0);
}

void Timeline::Set(size_t block, int32_t end) {
  size_t node = width_ + place_[block];
  ends_[node] = end;
  for (node /= 2; node > 0; node /= 2) {
    const int32_t greatest = std::max(ends_[2 * node], ends_[2 * node + 1]);
    if (ends_[node] == greatest) break;
    ends_[node] = greatest;
  }
}

}  // namespace mxplan::planner
