// The rules of a program's memory, held before it runs: every byte that a step reads was written
// for it and stands there still, nothing overlaps but what is in place, and the plan is aligned.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_MEMORY_MEMORY_RULES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_MEMORY_MEMORY_RULES_H_

#include <cstdint>
#include <vector>

#include "program/resolved.h"

namespace mxplan {

// The places of everything in the arena.
struct Placement {
  std::vector<int64_t> values;  // of each local that owns its bytes; others are not looked at
  struct Scratchpad {
    int64_t offset = -1;  // -1: beside the arena
    int64_t bytes = 0;
  };
  std::vector<Scratchpad> scratchpads;  // of each step
};

// Works through the steps in order and throws InvalidInput that names the step, the value and what
// is wrong with its bytes.  Every value is placeable (CheckPlaceable).
void CheckMemory(const Resolved& resolved, const Placement& placement);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_MEMORY_MEMORY_RULES_H_
