// The rules that a step keeps before an executable is made of it: each operand in a role of its
// kind, of the right type, rank and extents, attributes in range, post-ops that fit the result.
//
// Programs come from files, so nothing in them is trusted: an executable reads and writes as many
// bytes as these rules imply, and no rule is left to a library.  What a rule allows may still be
// Unsupported; what none allows is InvalidInput.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_RULES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_RULES_H_

#include "program/resolved.h"
#include "program/shapes/step_shapes.h"

namespace mxplan {

// Throws InvalidInput that names the role, what was expected and what came; Unsupported for results
// that are made of nothing.  An unknown kind is left to the library.
void CheckStep(const Step& step, const Resolved& resolved, const StepLimits& limits);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_RULES_H_
