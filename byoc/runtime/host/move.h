// Elements from places of one tensor to places of another, axis by axis: reorders, slices, pads and
// concatenations are all of this.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_MOVE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_MOVE_H_

#include <cstdint>
#include <vector>

#include "host/layout.h"
#include "host/nest.h"

namespace mxplan::host {

// The places of the elements along one axis of a move.
struct Places {
  int64_t count = 0;
  Line dst, src;
};

class Move {
 public:
  Move(std::vector<Places> axes, int64_t element_bytes);

  void Run(const char* src, char* dst) const;

 private:
  void DropSingleAxes();
  void CopyRows(const char* src, char* dst, double element_ns) const;
  void RunTransposed(const char* src, char* dst) const;
  void RunByTables(const char* src, char* dst) const;

  int64_t element_bytes_;
  // If places are multiples of strides: the loops, and the first places.
  bool strided_ = true;
  int64_t first_dst_ = 0, first_src_ = 0;
  Nest<2> nest_;
  // Everywhere else: the axes in the order in which dst is written, the innermost last, and the
  // elements of that one that stand side by side in both.
  struct Stretch {
    int64_t dst, src, count;
  };
  std::vector<Places> axes_;
  std::vector<Stretch> stretches_;
};

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_MOVE_H_
