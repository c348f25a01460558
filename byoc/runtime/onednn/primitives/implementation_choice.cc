// Choosing among implementations; see implementation_choice.h.
#include "onednn/primitives/implementation_choice.h"

#include <algorithm>

#include "base/error.h"

namespace mxplan {

std::string ToText(const std::vector<RefusedImplementation>& refused) {
  std::string text;
  for (const RefusedImplementation& one : refused) {
    text += Concat(text.empty() ? "" : ", ", one.implementation, " (", one.reason, ")");
  }
  return text;
}

bool MayRun(const Choice& choice, const std::string& implementation,
            std::vector<RefusedImplementation>* refused) {
  const Refusal* refusal = RefusalOf(choice.refusals, implementation);
  if (!refusal) return true;
  bool known = std::any_of(refused->begin(), refused->end(),
                           [&](const auto& one) { return one.implementation == implementation; });
  if (!known) refused->push_back({implementation, refusal->reason});
  return false;
}

}  // namespace mxplan
