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
    const std::vector<int64_t>& uids = stage_.uids();
    if (changed_) {
      std::vector<void*> tensors(addresses_.begin(),
                                 addresses_.begin() + static_cast<std::ptrdiff_t>(uids.size()));
      void* workspace = addresses_.size() > uids.size() ? addresses_.back() : nullptr;
      pack_.Make(uids, tensors, workspace);
      changed_ = false;
    }
    CudnnHandle handle = static_cast<CudaQueue*>(stream)->handle();
    CheckCudnn(Cuda().cudnnBackendExecute(handle, stage_.plan().descriptor(), pack_.descriptor()),
               "cudnnBackendExecute");
  }

 private:
  const PlanStage& stage_;
  VariantPack pack_;
};

class TransformCall final : public Addressed {
 public:
  explicit TransformCall(const TransformStage& stage) : Addressed(2), stage_(stage) {}

  void Run(Stream* stream) override {
    const float one = 1, zero = 0;
    CudnnHandle handle = static_cast<CudaQueue*>(stream)->handle();
    CheckCudnn(Cuda().cudnnTransformTensor(handle, &one, stage_.src(), addresses_[0], &zero,
                                           stage_.dst(), addresses_[1]),
               "cudnnTransformTensor");
  }

 private:
  const TransformStage& stage_;
};

int TypeOf(const std::string& dtype) {
  if (dtype == "float32") return kCudnnFloat;
  if (dtype == "float16") return kCudnnHalf;
  ThrowUnsupported("a tensor of ", dtype, ": expected float32 or float16");
}

// Axes of extent 1 stand in front of tensors of low rank.
CudnnDescriptor Describe(const Dims& dims, const std::string& dtype, const PhysicalLayout& layout) {
  if (dims.size() > kMostRank) ThrowUnsupported("a tensor of rank ", dims.size());
  size_t missing = dims.size() < kLeastRank ? kLeastRank - dims.size() : 0;
  std::vector<int> extents(missing, 1), strides(missing, 1);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > INT32_MAX || layout.strides[i] > INT32_MAX) {
      ThrowUnsupported("a tensor whose elements cannot be counted in 31 bits");
    }
    extents.push_back(static_cast<int>(dims[i]));
    strides.push_back(static_cast<int>(layout.strides[i]));
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

}  // namespace

PlanStage::PlanStage(std::vector<Argument> arguments, const PlanRecord& record, CudnnHandle handle)
    : Stage(std::move(arguments)), uids_(record.uids), plan_(record, handle) {}

std::unique_ptr<StageCall> PlanStage::NewCall() const { return std::make_unique<PlanCall>(*this); }

TransformStage::TransformStage(std::vector<Argument> arguments, const Dims& dims,
                               const std::string& dtype, const PhysicalLayout& src,
                               const PhysicalLayout& dst)
    : Stage(std::move(arguments)) {
  TypeOf(dtype);
  src_ = Describe(dims, dtype, src);
  try {
    dst_ = Describe(dims, dtype, dst);
  } catch (...) {
    Cuda().cudnnDestroyTensorDescriptor(src_);
    throw;
  }
}

TransformStage::~TransformStage() {
  Cuda().cudnnDestroyTensorDescriptor(src_);
  Cuda().cudnnDestroyTensorDescriptor(dst_);
}

std::unique_ptr<StageCall> TransformStage::NewCall() const {
  return std::make_unique<TransformCall>(*this);
}

}  // namespace mxplan
