// Stages of regions on a GPU; see stages.h.
#include "cudnn/stages.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace mxplan {
namespace {

constexpr size_t kLeastRank = 4, kMostRank = 8;

// Addresses of a stage's arguments in one context.
class Addressed : public StageCall {
 public:
  explicit Addressed(size_t arguments) : addresses_(arguments, nullptr) {}
  void SetAddress(size_t argument, void* address) override {
    changed_ = changed_ || addresses_[argument] != address;
    addresses_[argument] = address;
  }

 protected:
  std::vector<void*> addresses_;
  bool changed_ = true;
};

class PlanCall final : public Addressed {
 public:
  explicit PlanCall(const PlanStage& stage) : Addressed(stage.arguments().size()), stage_(stage) {}

  void Run(Stream* stream) override {
    CudnnHandle handle = static_cast<CudaQueue*>(stream)->handle();
    for (;;) {
      const size_t number = stage_.current();
      if (changed_ || number != bound_) Bind(number);
      const int status =
          Cuda().cudnnBackendExecute(handle, stage_.descriptor(number), pack_.descriptor());
      if (status == 0) return;
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

class FunctionCall final : public Addressed {
 public:
  explicit FunctionCall(const FunctionStage& stage) : Addressed(2), stage_(stage) {}

  void Run(Stream* stream) override {
    CudnnHandle handle = static_cast<CudaQueue*>(stream)->handle();
    CheckCudnn(stage_.Call(handle, addresses_[0], addresses_[1]), stage_.function());
  }

 private:
  const FunctionStage& stage_;
};

int TypeOf(const std::string& dtype) {
  if (dtype == "float32") return kCudnnFloat;
  if (dtype == "float16") return kCudnnHalf;
  if (dtype == "bfloat16") return kCudnnBfloat16;
  ThrowUnsupported("a tensor of ", dtype, ": expected float32, float16 or bfloat16");
}

// Axes of extent 1 stand in front of tensors of low rank.
CudnnDescriptor Describe(const Dims& dims, const std::string& dtype, const Dims& elements) {
  if (dims.size() > kMostRank) ThrowUnsupported("a tensor of rank ", dims.size());
  size_t missing = dims.size() < kLeastRank ? kLeastRank - dims.size() : 0;
  std::vector<int> extents(missing, 1), strides(missing, 1);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > INT32_MAX || elements[i] > INT32_MAX) {
      ThrowUnsupported("a tensor whose elements cannot be counted in 31 bits");
    }
    extents.push_back(static_cast<int>(dims[i]));
    strides.push_back(static_cast<int>(elements[i]));
  }
  const CudaApi& cuda = Cuda();
  CudnnDescriptor made = nullptr;
  CheckCudnn(cuda.cudnnCreateTensorDescriptor(&made), "cudnnCreateTensorDescriptor");
  int status = cuda.cudnnSetTensorNdDescriptor(
      made, TypeOf(dtype), static_cast<int>(extents.size()), extents.data(), strides.data());
  if (status != 0) cuda.cudnnDestroyTensorDescriptor(made);
  CheckCudnn(status, "cudnnSetTensorNdDescriptor");
  return made;
}

// Extents of what stands around an axis, the axis in the middle: all a softmax depends on.
Dims Around(const Dims& dims, const PhysicalLayout& layout, size_t axis) {
  const int64_t inner = layout.strides[axis];
  int64_t elements = 1;
  for (int64_t extent : dims) elements *= extent;
  return {elements / (inner * dims[axis]), dims[axis], inner, 1};
}

Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

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

FunctionStage::FunctionStage(std::vector<Argument> arguments, const std::string& dtype,
                             const Dims& dims, const Dims& src_strides, const Dims& dst_strides)
    : Stage(std::move(arguments)) {
  TypeOf(dtype);
  src_ = Describe(dims, dtype, src_strides);
  try {
    dst_ = Describe(dims, dtype, dst_strides);
  } catch (...) {
    Cuda().cudnnDestroyTensorDescriptor(src_);
    throw;
  }
}

FunctionStage::~FunctionStage() {
  Cuda().cudnnDestroyTensorDescriptor(src_);
  Cuda().cudnnDestroyTensorDescriptor(dst_);
}

std::unique_ptr<StageCall> FunctionStage::NewCall() const {
  return std::make_unique<FunctionCall>(*this);
}

TransformStage::TransformStage(std::vector<Argument> arguments, const std::string& dtype,
                               const Dims& dims, const Dims& src_strides, const Dims& dst_strides,
                               Places places)
    : FunctionStage(std::move(arguments), dtype, dims, src_strides, dst_strides), places_(places) {}

int TransformStage::Call(CudnnHandle handle, const void* src, void* dst) const {
  const float one = 1, zero = 0;
  return Cuda().cudnnTransformTensor(handle, &one, this->src(),
                                     static_cast<const char*>(src) + places_.src, &zero,
                                     this->dst(), static_cast<char*>(dst) + places_.dst);
}

SoftmaxStage::SoftmaxStage(std::vector<Argument> arguments, const std::string& dtype,
                           const Dims& dims, const PhysicalLayout& layout, size_t axis,
                           bool logarithm)
    : FunctionStage(std::move(arguments), dtype, Around(dims, layout, axis),
                    StridesOf(Around(dims, layout, axis)), StridesOf(Around(dims, layout, axis))),
      logarithm_(logarithm) {}

int SoftmaxStage::Call(CudnnHandle handle, const void* src, void* dst) const {
  const float one = 1, zero = 0;
  int algorithm = logarithm_ ? kCudnnSoftmaxLog : kCudnnSoftmaxAccurate;
  return Cuda().cudnnSoftmaxForward(handle, algorithm, kCudnnSoftmaxChannel, &one, this->src(), src,
                                    &zero, this->dst(), dst);
}

}  // namespace mxplan
