// Questions to the text of a step (StepDescriptor::text), beside what it has as typed facts.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_TEXT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_TEXT_H_

#include <string>

namespace mxplan {

// Whether the step has an operand in this role.
bool NamesOperand(const std::string& text, const std::string& role);

// The element type of the first operand in this role; '' where there is none.
std::string TypeOfOperand(const std::string& text, const std::string& role);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_TEXT_H_
