// Arena offsets for regions whose shapes are known only at run time.  Plain data in, plain data
// out.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_MEMORY_PLANNER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_MEMORY_PLANNER_H_

#include <cstdint>
#include <vector>

namespace mxplan {

// Bytes that live during [birth, death), counted in steps.
struct ArenaItem {
  int birth = 0;
  int death = 0;
  int64_t bytes = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // of each item, multiples of 64
  int64_t bytes = 0;
};

// Largest first, each into the tightest gap between the items placed before it that live at the
// same time.
ArenaPlan PlanArena(const std::vector<ArenaItem>& items);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_MEMORY_PLANNER_H_
