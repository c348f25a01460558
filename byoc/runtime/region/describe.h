// The dry run: builds every step of a program and says what came of it, without data.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_DESCRIBE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_DESCRIBE_H_

#include <string>
#include <vector>

#include "library/library.h"
#include "program/program.h"

namespace mxplan {

// JSON:
//   {"steps": [{"implementation": "brg:avx512_core", "scratchpad_bytes": 0, "weights_bytes": 0,
//               "relative_error": 0, "alternatives": [], "refused": [["name", "reason"]],
//               "descriptor": "convolution ...", "error": ""}],
//    "values": [{"layout": "acdb", "nbytes": 1024}]}
// Steps that name no library are those of `library`.  A step that cannot be made says why in
// "error".  Values in layout "any" get the layout that the first step to touch them decides; nbytes
// is -1 where no step did or the type is unknown.
std::string Describe(const Program& program, const Library& library,
                     const std::vector<int64_t>& symbols);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_DESCRIBE_H_
