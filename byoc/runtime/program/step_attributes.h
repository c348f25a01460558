// A step's attributes by name and type.  What is missing, of another type or out of range throws
// InvalidInput with the attribute's name.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_ATTRIBUTES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace mxplan {

int64_t IntegerOf(const Step& step, const char* name);
// An integer stands for a real number too.
double RealOf(const Step& step, const char* name);
bool FlagOf(const Step& step, const char* name);
const std::string& TextOf(const Step& step, const char* name);
const std::vector<int64_t>& IntegersOf(const Step& step, const char* name);
// `count` integers, each from `low` to 2^31 - 1.
const std::vector<int64_t>& IntegersOf(const Step& step, const char* name, size_t count,
                                       int64_t low);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_STEP_ATTRIBUTES_H_
