// Functions of cuDNN for Python, and TVM's stream for cuDNN.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <map>
#include <string_view>

#include "cudnn/device.h"
#include "cudnn/plans/failures.h"
#include "cudnn/plans/plan.h"
#include "cudnn/plans/timing.h"
#include "ffi/errors.h"
#include "ffi/library_functions.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

CudaStream StreamOfTvm(int device) { return TVMFFIEnvGetStream(kDLCUDA, device); }

std::string_view ViewOf(const ffi::Bytes& bytes) { return {bytes.data(), bytes.size()}; }

ffi::Bytes PlanDigest(const ffi::Bytes& bytes) { return ffi::Bytes(DigestOfPlan(ViewOf(bytes))); }

// Throws as running it would; the engine's name.
ffi::String CheckPlan(const ffi::Bytes& bytes) {
  return Guard([&] { return ffi::String(ReadPlan(ViewOf(bytes)).plans.front().engine); });
}

void SetLibraries(const ffi::String& cudart, const ffi::String& cudnn) {
  SetCudaLibraries(std::string(cudart), std::string(cudnn));
}

// The GPU of the calling thread.
ffi::Map<ffi::String, int64_t> Device() {
  return Guard([] {
    DeviceFacts facts = FactsOf(CurrentDevice());
    return ffi::Map<ffi::String, int64_t>({{"cudnn", facts.cudnn},
                                           {"sm", facts.sm},
                                           {"multiprocessors", facts.multiprocessors},
                                           {"driver", facts.driver}});
  });
}

// Region, step, the digest of its plans, engine, reason and the next engine of each plan that
// failed in this process.
ffi::Array<ffi::Array<ffi::String>> Failures() {
  ffi::Array<ffi::Array<ffi::String>> noted;
  for (const PlanFailure& one : NotedFailures()) {
    const StepName& step = one.step;
    noted.push_back({step.region, step.step, step.plans, one.engine, one.reason, one.next});
  }
  return noted;
}

// Microseconds of the plans of a record, or an empty list and a reason for each that did not run.
ffi::Array<ffi::Any> TimesOfPlans(const ffi::Bytes& record, const ffi::Shape& uids,
                                  const ffi::Shape& bytes, int64_t warm_up, int64_t runs,
                                  int64_t rounds) {
  return Guard([&] {
    std::map<int64_t, int64_t> sizes;
    for (size_t i = 0; i < uids.size() && i < bytes.size(); ++i) sizes[uids[i]] = bytes[i];
    const TimingRules rules = {static_cast<int>(warm_up), static_cast<int>(runs),
                               static_cast<int>(rounds)};
    ffi::Array<ffi::Any> found;
    for (const PlanTimes& one : TimePlans(ReadPlan(ViewOf(record)), sizes, rules)) {
      ffi::Array<double> times(one.microseconds.begin(), one.microseconds.end());
      found.push_back(ffi::Array<ffi::Any>({times, ffi::String(one.failure)}));
    }
    return found;
  });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  SetStreamSource(&StreamOfTvm);
  RegisterFunctionsOf("cudnn");
  tvm::ffi::reflection::GlobalDef()
      .def("tvm_mxplan.cudnn.plan_digest", PlanDigest)
      .def("tvm_mxplan.cudnn.check_plan", CheckPlan)
      .def("tvm_mxplan.cudnn.set_libraries", SetLibraries)
      .def("tvm_mxplan.cudnn.failures", Failures)
      .def("tvm_mxplan.cudnn.time_plans", TimesOfPlans)
      .def("tvm_mxplan.cudnn.device", Device);
}

}  // namespace
}  // namespace mxplan
