// Stages of regions on a GPU; see stages.h.
#include "cudnn/stages.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cudnn/addressed_call.h"
#include "cudnn/device.h"

namespace mxplan {
namespace {

class PlanCall final : public AddressedCall {
 public:
  explicit PlanCall(const PlanStage& stage)
      : AddressedCall(stage.arguments().size()), stage_(stage) {}

  void Run(Stream* stream) override {
    CudnnHandle handle = static_cast<CudaQueue*>(stream)->handle();
    for (;;) {
      const size_t number = stage_.current();
      if (changed_ || number != bound_) Bind(number);
      const int status =
          Taken(Cuda().cudnnBackendExecute(handle, stage_.descriptor(number), pack_.descriptor()));
      if (status == 0) return;
      // A plan that is refused in a graph may run by itself: the graph is given up, not the plan.
      if (IsRedirected()) CheckCudnn(status, "cudnnBackendExecute");
      stage_.GiveWay(number, Concat("cudnnBackendExecute: ", Cuda().cudnnGetErrorString(status)));
    }
  }

 private:
  void Bind(size_t number) {
    const EnginePlan& plan = stage_.plan(number);
    std::vector<int64_t> uids = plan.uids;
    std::vector<void*> addresses;
    for (size_t place : stage_.places(number)) addresses.push_back(addresses_[place]);
    for (const PlanScalar& scalar : plan.scalars) {
      uids.push_back(scalar.uid);
      addresses.push_back(const_cast<char*>(scalar.bytes));  // cuDNN reads it
    }
    pack_.Make(uids, addresses, stage_.has_workspace() ? addresses_.back() : nullptr);
    bound_ = number;
    changed_ = false;
  }

  const PlanStage& stage_;
  VariantPack pack_;
  size_t bound_ = 0;  // the plan that the pack is for
};

}  // namespace

PlanStage::PlanStage(std::vector<Argument> arguments, std::vector<int64_t> uids,
                     std::vector<EnginePlan> plans, StepName name, int device)
    : Stage(std::move(arguments)),
      plans_(std::move(plans)),
      name_(std::move(name)),
      device_(device),
      loaded_(plans_.size()) {
  for (const EnginePlan& plan : plans_) {
    has_workspace_ = has_workspace_ || plan.workspace > 0;
    std::vector<size_t>& places = places_.emplace_back();
    for (int64_t uid : plan.uids) {
      places.push_back(
          static_cast<size_t>(std::find(uids.begin(), uids.end(), uid) - uids.begin()));
    }
  }
  Load(0, "");
}

void PlanStage::GiveWay(size_t number, const std::string& reason) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (current_.load() != number) return;  // another thread has been here
  Load(number + 1, reason);
}

void PlanStage::Load(size_t number, const std::string& reason) const {
  std::string failure = reason;
  for (; number < plans_.size(); ++number) {
    const std::string failed = number > 0 ? plans_[number - 1].engine : "";
    try {
      BuildHandle handle(device_);
      loaded_[number] = std::make_unique<LoadedPlan>(plans_[number], handle.get());
    } catch (const Error& error) {
      if (number > 0) NoteFailure({name_, failed, failure, ""});
      failure = error.what();
      continue;
    }
    if (number > 0) {
      NoteFailure({name_, failed, failure, plans_[number].engine});
    }
    current_.store(number);
    return;
  }
  NoteFailure({name_, plans_.back().engine, failure, ""});
  ThrowUnsupported(failure);
}

std::unique_ptr<StageCall> PlanStage::NewCall() const { return std::make_unique<PlanCall>(*this); }

}  // namespace mxplan
