#include "problem/geometry.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "problem/timeline.h"

namespace mxplan::planner {
namespace {

// Greatest number of which every block begins at a multiple.
int64_t GrainOf(const Instance& instance) {
  int64_t grain = 0;
  for (const int64_t alignment : instance.alignment) grain = std::gcd(grain, alignment);
  for (const Block& block : instance.shapes.values()) grain = std::gcd(grain, block.low);
  return grain;
}

int64_t StepOf(const Instance& instance) {
  int64_t step = 0;
  for (const Block& block : instance.shapes.values()) {
    step = std::gcd(step, std::gcd(block.low, block.high));
  }
  int64_t aligned = step;
  for (const int64_t alignment : instance.alignment) {
    if (step % alignment != 0) aligned = std::gcd(aligned, alignment);
  }
  return aligned;
}

Neighbour Beside(int32_t item, Row<Block> self, Row<Block> other) {
  if (self.size() == 1 && other.size() == 1) {
    return {item, self[0].high - other[0].low, other[0].high - self[0].low};
  }
  const std::vector<Zone> zones = ZonesOf(self, other);
  return {item, zones.back().low, -zones[zones.size() - 2].high};
}

}  // namespace

std::vector<Zone> ZonesOf(Row<Block> lower, Row<Block> upper) {
  std::vector<Zone> forbidden, found;  // of `forbidden` the ends are allowed
  for (const Block& a : lower) {
    for (const Block& b : upper) {
      if (a.Meets(b)) forbidden.push_back({a.low - b.high, a.high - b.low});
    }
  }
  std::sort(forbidden.begin(), forbidden.end(), [](const Zone& x, const Zone& y) {
    return x.low != y.low ? x.low < y.low : x.high < y.high;
  });
  int64_t begin = -kFar;
  for (const Zone& span : forbidden) {
    if (span.low >= begin) found.push_back({begin, span.low});
    begin = std::max(begin, span.high);
  }
  found.push_back({begin, kFar});
  return found;
}

Geometry::Geometry(const Instance& instance) : grain(GrainOf(instance)), step(StepOf(instance)) {
  const size_t count = instance.size();
  const std::vector<Block>& blocks = instance.shapes.values();
  std::vector<int32_t> owner(blocks.size());
  Timeline timeline(instance);
  std::vector<std::vector<Piece>> alive(static_cast<size_t>(instance.sections));
  for (size_t item = 0; item < count; ++item) {
    std::map<int32_t, int64_t> bytes;
    int64_t level = 0;
    for (size_t at = 0; at < instance.shapes[item].size(); ++at) {
      const size_t block = instance.shapes.head(item) + at;
      const auto number = static_cast<int32_t>(item);
      owner[block] = number;
      timeline.Add(block);
      level = std::max(level, blocks[block].low);
      const int64_t size = AlignUp(blocks[block].size(), grain);
      const Piece piece{number, blocks[block].low, size, size - blocks[block].size()};
      for (int32_t s = blocks[block].first; s < blocks[block].last; ++s) {
        alive[static_cast<size_t>(s)].push_back(piece);
        bytes[s] += size;
      }
    }
    for (const auto& [section, sum] : bytes) loads.Add({section, sum});
    loads.EndRow();
    levels.push_back(level);
  }
  for (const std::vector<Piece>& row : alive) {
    for (const Piece& piece : row) pieces.Add(piece);
    pieces.EndRow();
  }
  std::vector<int32_t> met;
  std::vector<char> seen(count);
  for (size_t item = 0; item < count; ++item) {
    met.clear();
    seen[item] = 1;
    for (const Block& block : instance.shapes[item]) {
      timeline.ForEach(block.first, block.last, [&](size_t other) {
        const int32_t found = owner[other];
        if (seen[static_cast<size_t>(found)] == 0) met.push_back(found);
        seen[static_cast<size_t>(found)] = 1;
      });
    }
    std::sort(met.begin(), met.end());
    bool always_below = true;
    for (const int32_t other : met) {
      seen[static_cast<size_t>(other)] = 0;
      around.Add(Beside(other, instance.shapes[item], instance.shapes[static_cast<size_t>(other)]));
      always_below = always_below && around.values().back().touched > 0;
    }
    seen[item] = 0;
    around.EndRow();
    plain.push_back(always_below ? 1 : 0);
  }
}

int64_t GeometrySize(const Instance& instance, int64_t conflicts) {
  int64_t size = 2 * conflicts;
  for (const Block& block : instance.shapes.values()) size += 2 * (block.last - block.first);
  return size;
}

}  // namespace mxplan::planner
