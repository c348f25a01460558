// Stages by functions of cuDNN's own; see function_stages.h.
#include "cudnn/function_stages.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cudnn/addressed_call.h"
#include "cudnn/device.h"

namespace mxplan {
namespace {

constexpr size_t kLeastRank = 4, kMostRank = 8;
constexpr size_t kMostConverted = 5;  // axes of a conversion

class FunctionCall final : public AddressedCall {
 public:
  explicit FunctionCall(const FunctionStage& stage) : AddressedCall(2), stage_(stage) {}

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
CudnnDescriptor Describe(const std::string& dtype, const Extents& tensor) {
  const auto& [dims, elements] = tensor;
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

// An axis of two tensors.
struct Axis {
  int64_t extent, src, dst;  // strides
};

// The axes with more than one index, from the one whose steps in dst are longest; neighbours that
// stand one behind the other in both tensors are one.
std::vector<Axis> Merged(const Dims& dims, const Dims& src, const Dims& dst) {
  std::vector<Axis> axes, merged;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) axes.push_back({dims[i], src[i], dst[i]});
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.dst > b.dst; });
  for (const Axis& axis : axes) {
    Axis* outer = merged.empty() ? nullptr : &merged.back();
    if (outer != nullptr && outer->src == axis.src * axis.extent &&
        outer->dst == axis.dst * axis.extent) {
      *outer = {outer->extent * axis.extent, axis.src, axis.dst};
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

Conversion ConversionOf(const Dims& dims, const Dims& src, const Dims& dst, Places begin,
                        int64_t element_bytes) {
  if (dims.size() <= kMostConverted) return {{dims, src}, {dims, dst}, {begin}};
  Conversion made;
  std::vector<Axis> axes = Merged(dims, src, dst);
  made.places = {begin};
  while (axes.size() > kMostConverted) {
    auto shortest = std::min_element(
        axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
    std::vector<Places> all;
    for (const Places& one : made.places) {
      for (int64_t i = 0; i < shortest->extent; ++i) {
        all.push_back({one.src + i * shortest->src * element_bytes,
                       one.dst + i * shortest->dst * element_bytes});
      }
    }
    made.places = std::move(all);
    axes.erase(shortest);
  }
  for (const Axis& axis : axes) {
    made.src.dims.push_back(axis.extent);
    made.src.strides.push_back(axis.src);
    made.dst.strides.push_back(axis.dst);
  }
  made.dst.dims = made.src.dims;
  return made;
}

// Extents around an axis, the axis in the middle: all a softmax depends on.
Extents Around(const Dims& dims, const PhysicalLayout& layout, size_t axis) {
  const int64_t inner = layout.strides[axis];
  int64_t elements = 1;
  for (int64_t extent : dims) elements *= extent;
  return {{elements / (inner * dims[axis]), dims[axis], inner, 1},
          {inner * dims[axis], inner, 1, 1}};
}

// An image of one axis gets one of extent 1 in front of it: cuDNN's have two or three.
Extents AsImage(const Extents& tensor) {
  Extents image = tensor;
  if (tensor.dims.size() != 3) return image;
  image.dims.insert(image.dims.begin() + 2, 1);
  image.strides.insert(image.strides.begin() + 2, tensor.strides[2] * tensor.dims[2]);
  return image;
}

std::vector<int> AlongImage(const Dims& numbers, int in_front) {
  std::vector<int> found(numbers.begin(), numbers.end());
  if (found.size() == 1) found.insert(found.begin(), in_front);
  return found;
}

int ModeOf(const std::string& algorithm) {
  if (algorithm == "max") return kCudnnPoolMax;
  if (algorithm == "avg_include_padding") return kCudnnPoolWithPadding;
  if (algorithm == "avg_exclude_padding") return kCudnnPoolWithoutPadding;
  ThrowUnsupported("pool ", algorithm);
}

}  // namespace

FunctionStage::FunctionStage(std::vector<Argument> arguments, const std::string& dtype,
                             const Extents& src, const Extents& dst)
    : Stage(std::move(arguments)) {
  TypeOf(dtype);
  src_ = Describe(dtype, src);
  try {
    dst_ = Describe(dtype, dst);
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
    : TransformStage(std::move(arguments), dtype,
                     ConversionOf(dims, src_strides, dst_strides, places, ElementBytes(dtype))) {}

TransformStage::TransformStage(std::vector<Argument> arguments, const std::string& dtype,
                               Conversion conversion)
    : FunctionStage(std::move(arguments), dtype, conversion.src, conversion.dst),
      places_(std::move(conversion.places)) {}

int TransformStage::Call(CudnnHandle handle, const void* src, void* dst) const {
  const float one = 1, zero = 0;
  for (const Places& place : places_) {
    int status = Cuda().cudnnTransformTensor(handle, &one, this->src(),
                                             static_cast<const char*>(src) + place.src, &zero,
                                             this->dst(), static_cast<char*>(dst) + place.dst);
    if (status != 0) return status;
  }
  return 0;
}

SoftmaxStage::SoftmaxStage(std::vector<Argument> arguments, const std::string& dtype,
                           const Dims& dims, const PhysicalLayout& layout, size_t axis,
                           bool logarithm)
    : FunctionStage(std::move(arguments), dtype, Around(dims, layout, axis),
                    Around(dims, layout, axis)),
      logarithm_(logarithm) {}

int SoftmaxStage::Call(CudnnHandle handle, const void* src, void* dst) const {
  const float one = 1, zero = 0;
  int algorithm = logarithm_ ? kCudnnSoftmaxLog : kCudnnSoftmaxAccurate;
  return Cuda().cudnnSoftmaxForward(handle, algorithm, kCudnnSoftmaxChannel, &one, this->src(), src,
                                    &zero, this->dst(), dst);
}

PoolingStage::PoolingStage(std::vector<Argument> arguments, const std::string& dtype,
                           const Extents& src, const Extents& dst, const Windows& windows)
    : FunctionStage(std::move(arguments), dtype, AsImage(src), AsImage(dst)) {
  const std::vector<int> kernel = AlongImage(windows.kernel, 1);
  const std::vector<int> padding = AlongImage(windows.padding, 0);
  const std::vector<int> strides = AlongImage(windows.strides, 1);
  const int mode = ModeOf(windows.algorithm);
  CheckCudnn(Cuda().cudnnCreatePoolingDescriptor(&windows_), "cudnnCreatePoolingDescriptor");
  int status = Cuda().cudnnSetPoolingNdDescriptor(windows_, mode, kCudnnPropagateNan,
                                                  static_cast<int>(kernel.size()), kernel.data(),
                                                  padding.data(), strides.data());
  if (status != 0) Cuda().cudnnDestroyPoolingDescriptor(windows_);
  CheckCudnn(status, "cudnnSetPoolingNdDescriptor");
}

PoolingStage::~PoolingStage() { Cuda().cudnnDestroyPoolingDescriptor(windows_); }

int PoolingStage::Call(CudnnHandle handle, const void* src, void* dst) const {
  const float one = 1, zero = 0;
  return Cuda().cudnnPoolingForward(handle, windows_, &one, this->src(), src, &zero, this->dst(),
                                    dst);
}

}  // namespace mxplan
