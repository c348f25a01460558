// Picks one of oneDNN's implementations for a primitive: the preferred one, or the first that is
// not refused.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_IMPLEMENTATION_CHOICE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_IMPLEMENTATION_CHOICE_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "onednn/primitives/refusals.h"

namespace mxplan {

struct Choice {
  std::string preferred;  // '': oneDNN's first
  std::vector<Refusal> refusals;
};

// One line for all of them, with reasons.
std::string ToText(const std::vector<RefusedImplementation>& refused);

template <typename Desc>
struct Picked {
  bool found = false;  // else everything is refused
  Desc desc;
  std::vector<RefusedImplementation> refused;  // what was passed over, each name once
};

// True if `implementation` may run; else adds it to `refused`.
bool MayRun(const Choice& choice, const std::string& implementation,
            std::vector<RefusedImplementation>* refused);

// Picks among what `describe` gives, a primitive's descriptor at its first implementation each
// time.  Kinds that have no other implementation to move on to (reorder, concat) are only held
// against the refusals.
template <typename Describe>
auto Pick(const Choice& choice, const Describe& describe) -> Picked<decltype(describe())> {
  Picked<decltype(describe())> picked;
  picked.desc = describe();
  auto may_run = [&] { return MayRun(choice, picked.desc.impl_info_str(), &picked.refused); };
  if constexpr (std::is_base_of_v<dnnl::primitive_desc, decltype(describe())>) {
    if (!choice.preferred.empty()) {
      bool more = true;
      while (more && choice.preferred != picked.desc.impl_info_str()) {
        more = picked.desc.next_impl();
      }
      picked.found = more && may_run();
      if (picked.found) return picked;
      picked.desc = describe();
    }
    bool more = true;
    while (more && !(picked.found = may_run())) more = picked.desc.next_impl();
  } else {
    picked.found = may_run();
  }
  return picked;
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_IMPLEMENTATION_CHOICE_H_
