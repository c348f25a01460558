#include "problem/instance.h"

#include <algorithm>

namespace mxplan::planner {

Instance MakeInstance(int64_t items, const int64_t* heads, const int64_t* blocks,
                      const int64_t* alignment, int64_t sections) {
  Instance made;
  const auto count = static_cast<size_t>(items);
  made.shapes.Reserve(count, static_cast<size_t>(heads[items]));
  made.alignment.assign(alignment, alignment + items);
  made.sections = static_cast<int32_t>(sections);
  for (size_t item = 0; item < count; ++item) {
    int64_t extent = 0;
    int32_t first = made.sections, last = 0;
    for (int64_t at = heads[item]; at < heads[item + 1]; ++at) {
      const int64_t* row = blocks + 4 * at;
      const Block block{static_cast<int32_t>(row[0]), static_cast<int32_t>(row[1]), row[2], row[3]};
      made.shapes.Add(block);
      extent = std::max(extent, block.high);
      first = std::min(first, block.first);
      last = std::max(last, block.last);
    }
    made.rigid = made.rigid || heads[item + 1] - heads[item] > 1 || blocks[4 * heads[item] + 2] > 0;
    made.shapes.EndRow();
    made.extent.push_back(extent);
    made.first.push_back(first);
    made.last.push_back(last);
  }
  return made;
}

int64_t HeightOf(const Instance& instance, const Bases& bases) {
  int64_t height = 0;
  for (size_t item = 0; item < bases.size(); ++item) {
    height = std::max(height, bases[item] + instance.extent[item]);
  }
  return height;
}

}  // namespace mxplan::planner
