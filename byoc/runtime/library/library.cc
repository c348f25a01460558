// The registry of libraries, and the one place where a failure gets its step's name; see library.h.
#include "library/library.h"

#include <map>

#include "base/error.h"
#include "program/step_rules.h"

namespace mxplan {
namespace {

// Filled before main begins, by one thread.
std::map<std::string, const Library*>& Libraries() {
  static auto* libraries = new std::map<std::string, const Library*>();
  return *libraries;
}

}  // namespace

Executable Builder::Build(const Step& step, bool lists_alternatives) {
  try {
    CheckStep(step, *resolved_, limits_);
    return Make(step, lists_alternatives);
  } catch (const Error& error) {
    throw Error(error.kind(), Concat(step.kind, " ", step.name, ": ", error.what()));
  }
}

void RegisterLibrary(const Library& library) { Libraries()[library.name()] = &library; }

const Library& FindLibrary(const std::string& name) {
  auto found = Libraries().find(name);
  if (found != Libraries().end()) return *found->second;
  std::string names;
  for (const auto& [known, library] : Libraries()) names += (names.empty() ? "" : ", ") + known;
  ThrowInvalidInput("no library ", name, "; expected one of: ", names);
}

}  // namespace mxplan
