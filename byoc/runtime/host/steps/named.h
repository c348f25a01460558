// Values by the names that attributes of steps have for them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_NAMED_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_NAMED_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "host/steps/builders.h"

namespace mxplan::host {

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

// The value of `known` that the step's attribute names.  Throws for a name that is not there.
template <typename T, size_t kCount>
T ValueOf(const Named<T> (&known)[kCount], const Step& step, const char* attribute) {
  const std::string& name = TextOf(step, attribute);
  for (const Named<T>& one : known) {
    if (one.name == name) return one.value;
  }
  ThrowUnsupported(attribute, " ", name, ", which the host library has not");
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_NAMED_H_
