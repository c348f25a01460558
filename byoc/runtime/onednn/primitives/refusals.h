// Implementations that a step must not run: errata, and those this process has been told.
//
// Whoever picks an implementation asks RefusalsOf(step) once, passes over those that RefusalOf
// finds, and makes the refusals part of the key under which the pick is remembered.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_REFUSALS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_REFUSALS_H_

#include <string>
#include <vector>

#include "library/executable.h"
#include "program/step_descriptor.h"

namespace mxplan {

struct Refusal {
  std::string implementation;  // a name, where * stands for anything if it is a `pattern`
  bool pattern = false;
  std::string reason;
  bool with_epilogue = false;  // right for the same step without bias and post-ops
};

// The refusals that hold for a step, in a fixed order.
std::vector<Refusal> RefusalsOf(const StepDescriptor& step);
// The same, and what the plan says that the step is part of.
std::vector<Refusal> RefusalsOf(const Step& step, const Resolved& resolved);

// The first of `refusals` that names `implementation`; null if none does.
const Refusal* RefusalOf(const std::vector<Refusal>& refusals, const std::string& implementation);

// The same for the name of a step that several primitives run together, which patterns are not
// about.
const Refusal* RefusalOfWhole(const std::vector<Refusal>& refusals,
                              const std::string& implementation);

// Refuses an implementation for all steps of this descriptor (StepDescriptor::text) from now on.
void Refuse(const std::string& descriptor, const std::string& implementation,
            const std::string& reason);
void ForgetRefusals();

// All that Refuse was told, as JSON.
std::string RegisteredRefusalsJson();

// Whether errata count, as they do at first.  Off is for finding them.
void SetErrata(bool on);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_REFUSALS_H_
