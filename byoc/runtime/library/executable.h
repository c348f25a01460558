// A step as stages with their arguments, made once and never changed.
//
// An Executable knows value ids, no addresses.  An execution context gives each argument its
// address; the same executable runs in many contexts at once.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_EXECUTABLE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "library/stage.h"

namespace mxplan {

// An implementation that would have been taken, and why it was not.
struct RefusedImplementation {
  std::string implementation;
  std::string reason;
};

struct Executable {
  std::vector<std::unique_ptr<const Stage>> stages;  // none: the step is done by aliasing
  std::string implementation;
  int64_t scratchpad_bytes = 0;
  int64_t weights_bytes = 0;  // of constant weights, in the forms that stages want
  double relative_error = 0;  // in the L2 norm, beyond what rounding a sum in float32 costs
  std::vector<std::string> alternatives;  // that could be preferred, where they were asked for
  std::string missing;  // the implementation that the step prefers, where the library lacks it
  std::vector<RefusedImplementation> refused;  // would have been taken, were they right
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_EXECUTABLE_H_
