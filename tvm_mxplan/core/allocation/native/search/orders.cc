#include "search/orders.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace mxplan::planner {
namespace {

constexpr const char* kRecipes[] = {"TWA", "TAW", "WAT", "A", "S", "W",  "SW", "WS",
                                    "AT",  "C",   "CS",  "B", "E", "TS", "AC", "SC"};

// Maximum of any range, from the maxima of all ranges whose length is a power of two.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::vector<int64_t> values) {
    const size_t count = values.size();
    levels_.push_back(std::move(values));
    for (size_t half = 1; 2 * half <= count; half *= 2) {
      const std::vector<int64_t>& below = levels_.back();
      std::vector<int64_t> level(count - 2 * half + 1);
      for (size_t at = 0; at < level.size(); ++at) {
        level[at] = std::max(below[at], below[at + half]);
      }
      levels_.push_back(std::move(level));
    }
  }

  int64_t Over(size_t first, size_t last) const {
    size_t level = 0;
    while ((size_t{2} << level) <= last - first) ++level;
    const std::vector<int64_t>& row = levels_[level];
    return std::max(row[first], row[last - (size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<int64_t>> levels_;
};

}  // namespace

Measures::Measures(const Instance& instance) {
  const size_t count = instance.size();
  const auto sections = static_cast<size_t>(instance.sections);
  std::vector<int64_t> change(sections + 1), loads(sections);
  for (const Block& block : instance.shapes.values()) {
    change[static_cast<size_t>(block.first)] += block.size();
    change[static_cast<size_t>(block.last)] -= block.size();
  }
  std::partial_sum(change.begin(), change.end() - 1, loads.begin());
  const RangeMaximum most(std::move(loads));
  std::vector<int32_t> firsts(instance.first), lasts(instance.last);
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  for (size_t item = 0; item < count; ++item) {
    int64_t total = 0, area = 0;
    for (const Block& block : instance.shapes[item]) {
      total = std::max(
          total, most.Over(static_cast<size_t>(block.first), static_cast<size_t>(block.last)));
      area += (block.last - block.first) * block.size();
    }
    const int32_t first = instance.first[item], last = instance.last[item];
    // Those begun before its end, less those over when it begins, less itself.
    const auto begun = std::lower_bound(firsts.begin(), firsts.end(), last) - firsts.begin();
    const auto over = std::upper_bound(lasts.begin(), lasts.end(), first) - lasts.begin();
    total_.push_back(total);
    area_.push_back(area);
    size_.push_back(instance.extent[item]);
    duration_.push_back(last - first);
    conflicts_.push_back(begun - over - 1);
    begin_.push_back(-first);
    end_.push_back(last);
  }
}

const std::vector<int64_t>& Measures::Column(char letter) const {
  switch (letter) {
    case 'T':
      return total_;
    case 'A':
      return area_;
    case 'S':
      return size_;
    case 'W':
      return duration_;
    case 'C':
      return conflicts_;
    case 'B':
      return begin_;
    case 'E':
      return end_;
    default:
      throw std::logic_error(std::string("no measure has the letter ") + letter);
  }
}

Order Measures::By(const std::string& recipe, const std::vector<double>& blur) const {
  Order order(total_.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<const std::vector<int64_t>*> columns;
  for (const char letter : recipe) columns.push_back(&Column(letter));
  std::stable_sort(order.begin(), order.end(), [&](int32_t left, int32_t right) {
    const auto a = static_cast<size_t>(left), b = static_cast<size_t>(right);
    size_t at = 0;
    if (!blur.empty()) {
      const double x = static_cast<double>((*columns[0])[a]) * blur[a];
      const double y = static_cast<double>((*columns[0])[b]) * blur[b];
      if (x != y) return x > y;
      at = 1;
    }
    for (; at < columns.size(); ++at) {
      if ((*columns[at])[a] != (*columns[at])[b]) return (*columns[at])[a] > (*columns[at])[b];
    }
    return false;
  });
  return order;
}

std::vector<Order> Measures::All() const {
  std::vector<Order> found;
  for (const char* recipe : kRecipes) {
    Order order = By(recipe);
    if (std::find(found.begin(), found.end(), order) == found.end()) {
      found.push_back(std::move(order));
    }
  }
  return found;
}

int64_t Measures::conflicts() const {
  return std::accumulate(conflicts_.begin(), conflicts_.end(), int64_t{0}) / 2;
}

}  // namespace mxplan::planner
