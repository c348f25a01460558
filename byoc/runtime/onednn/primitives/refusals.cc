// Errata and registered refusals behind one question; see refusals.h.
#include "onednn/primitives/refusals.h"

#include <fnmatch.h>

#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "base/error.h"
#include "base/json.h"
#include "onednn/primitives/errata.h"

namespace mxplan {
namespace {

std::atomic<bool> errata_on{true};

struct Registered {
  std::shared_mutex mutex;
  // By descriptor, then by implementation.
  std::map<std::string, std::map<std::string, std::string>> reasons;
};

Registered& TheRegistered() {
  // Never destroyed: modules that outlive main's statics use it.
  static auto* registered = new Registered();
  return *registered;
}

}  // namespace

std::vector<Refusal> RefusalsOf(const StepDescriptor& step) {
  std::vector<Refusal> refusals;
  if (errata_on) {
    for (const Erratum& erratum : Errata()) {
      if (!IsOfThisVersion(erratum) || !Holds(erratum.condition, step)) continue;
      refusals.push_back({erratum.implementation, true,
                          Concat("erratum ", erratum.name, ": ", erratum.wrong),
                          erratum.remedy == Remedy::kEpilogueApart});
    }
  }
  Registered& registered = TheRegistered();
  std::shared_lock<std::shared_mutex> lock(registered.mutex);
  auto found = registered.reasons.find(step.text);
  if (found == registered.reasons.end()) return refusals;
  for (const auto& [implementation, reason] : found->second) {
    refusals.push_back({implementation, false, reason, false});
  }
  return refusals;
}

std::vector<Refusal> RefusalsOf(const Step& step, const Resolved& resolved) {
  std::vector<Refusal> refusals = RefusalsOf(DescribeStep(step, resolved));
  for (const std::string& implementation : step.refused) {
    if (!RefusalOf(refusals, implementation)) {
      refusals.push_back(
          {implementation, false, "found to be wrong when the plan was made", false});
    }
  }
  return refusals;
}

const Refusal* RefusalOf(const std::vector<Refusal>& refusals, const std::string& implementation) {
  for (const Refusal& refusal : refusals) {
    bool named = refusal.pattern
                     ? fnmatch(refusal.implementation.c_str(), implementation.c_str(), 0) == 0
                     : implementation == refusal.implementation;
    if (named) return &refusal;
  }
  return nullptr;
}

const Refusal* RefusalOfWhole(const std::vector<Refusal>& refusals,
                              const std::string& implementation) {
  for (const Refusal& refusal : refusals) {
    if (!refusal.pattern && implementation == refusal.implementation) return &refusal;
  }
  return nullptr;
}

void Refuse(const std::string& descriptor, const std::string& implementation,
            const std::string& reason) {
  if (descriptor.empty() || implementation.empty() || reason.empty()) {
    ThrowInvalidInput("a refusal needs a step's descriptor, an implementation and a reason");
  }
  Registered& registered = TheRegistered();
  std::unique_lock<std::shared_mutex> lock(registered.mutex);
  registered.reasons[descriptor][implementation] = reason;
}

void ForgetRefusals() {
  Registered& registered = TheRegistered();
  std::unique_lock<std::shared_mutex> lock(registered.mutex);
  registered.reasons.clear();
}

std::string RegisteredRefusalsJson() {
  Registered& registered = TheRegistered();
  std::shared_lock<std::shared_mutex> lock(registered.mutex);
  JsonWriter json;
  json.BeginArray();
  for (const auto& [descriptor, reasons] : registered.reasons) {
    for (const auto& [implementation, reason] : reasons) {
      json.BeginObject().Key("descriptor").String(descriptor);
      json.Key("implementation").String(implementation);
      json.Key("reason").String(reason).EndObject();
    }
  }
  json.EndArray();
  return json.Take();
}

void SetErrata(bool on) { errata_on = on; }

}  // namespace mxplan
