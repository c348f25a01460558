// Relative places that an instance's items can take; made once, read by every search.
//
// For items x and y alive together, the base of y less the base of x lies in one of a few zones.
// Two plain rectangles have two: y below x, and y above x.  Rigid groups can interlock, which adds
// zones between.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_GEOMETRY_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_GEOMETRY_H_

#include <cstdint>
#include <vector>

#include "problem/instance.h"

namespace mxplan::planner {

// Another item that is alive together with this one.
struct Neighbour {
  int32_t item;
  int64_t above;    // from here on the other one is above this one in every section
  int64_t touched;  // least at which this one can stand on the other one in any zone
};

// A block as one section sees it, its size rounded up to what no other block can begin in.
struct Piece {
  int32_t item;
  int64_t low;
  int64_t size;
  int64_t spare;  // bytes of `size` that rounding added
};

// Bytes of an item in a section, rounded as those of a piece.
struct Load {
  int32_t section;
  int64_t bytes;
};

// Closed interval of a distance between two bases.
struct Zone {
  int64_t low;
  int64_t high;
};

struct Geometry {
  explicit Geometry(const Instance& instance);

  Table<Neighbour> around;      // of each item
  Table<Piece> pieces;          // of each section
  Table<Load> loads;            // of each item, by section
  std::vector<int64_t> levels;  // of each item the begin of its topmost block
  std::vector<char> plain;      // items that stand below no neighbour's base and above it at once
  int64_t grain;                // every block begins at a multiple
  int64_t step;                 // the height of every plan with nothing to push down is a multiple
};

// Zones of the base of `upper` less the base of `lower`, sorted.
std::vector<Zone> ZonesOf(Row<Block> lower, Row<Block> upper);

// Numbers that Geometry would hold, to be asked before it is made.
int64_t GeometrySize(const Instance& instance, int64_t conflicts);

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_GEOMETRY_H_
