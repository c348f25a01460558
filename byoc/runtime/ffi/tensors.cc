// Conversions; see ffi/tensors.h.
#include "ffi/tensors.h"

#include <memory>

#include "base/error.h"

namespace mxplan {

namespace ffi = tvm::ffi;

namespace {

// The name TVM gives a type, without allocating for the usual ones.
const char* DtypeName(DLDataType dtype) {
  struct Name {
    uint8_t code, bits;
    const char* name;
  };
  constexpr Name kNames[] = {
      {kDLFloat, 32, "float32"},   {kDLFloat, 64, "float64"}, {kDLFloat, 16, "float16"},
      {kDLBfloat, 16, "bfloat16"}, {kDLInt, 8, "int8"},       {kDLInt, 16, "int16"},
      {kDLInt, 32, "int32"},       {kDLInt, 64, "int64"},     {kDLUInt, 8, "uint8"},
      {kDLUInt, 16, "uint16"},     {kDLUInt, 32, "uint32"},   {kDLUInt, 64, "uint64"},
      {kDLBool, 8, "bool"}};
  for (const Name& entry : kNames) {
    if (entry.code == dtype.code && entry.bits == dtype.bits && dtype.lanes == 1) return entry.name;
  }
  return "a type that no value has";
}

bool OnCpu(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
         device.device_type == kDLROCMHost;
}

MemorySpace::Kind SpaceOf(DLDevice device) {
  if (OnCpu(device)) return MemorySpace::Kind::kHost;
  return device.device_type == kDLCUDA ? MemorySpace::Kind::kCuda : MemorySpace::Kind::kUnknown;
}

}  // namespace

TensorRef ToRef(const DLTensor& tensor) {
  TensorRef ref;
  ref.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  ref.shape = tensor.shape;
  ref.strides = tensor.strides;
  ref.rank = tensor.ndim;
  ref.dtype = DtypeName(tensor.dtype);
  ref.space = SpaceOf(tensor.device);
  ref.device = tensor.device.device_id;
  return ref;
}

ConstantData ToConstant(const ffi::Tensor& tensor, int64_t number) {
  if (!tensor.IsContiguous() || !OnCpu(tensor.device())) {
    ThrowInvalidInput("constant ", number, " is not contiguous on the CPU");
  }
  const DLTensor* raw = tensor.GetDLTensorPtr();
  ConstantData constant;
  constant.dtype = DtypeName(raw->dtype);
  constant.shape.assign(raw->shape, raw->shape + raw->ndim);
  constant.data = static_cast<const char*>(raw->data) + raw->byte_offset;
  constant.bytes = (raw->dtype.bits + 7) / 8;
  for (int64_t dim : constant.shape) constant.bytes *= dim;
  constant.stored_bytes = constant.bytes;
  constant.owner = std::make_shared<ffi::Tensor>(tensor);
  return constant;
}

ffi::Tensor TensorOfBytes(const ConstantData& constant) {
  struct Shared {
    std::shared_ptr<const void> owner;
    void AllocData(DLTensor* tensor, const char* data) { tensor->data = const_cast<char*>(data); }
    void FreeData(DLTensor*) {}
  };
  int64_t shape[] = {constant.stored_bytes};
  return ffi::Tensor::FromNDAlloc(Shared{constant.owner}, ffi::ShapeView(shape, 1),
                                  DLDataType{kDLUInt, 8, 1}, DLDevice{kDLCPU, 0}, constant.data);
}

ffi::Tensor ViewOfBytes(const Span& bytes) {
  struct Borrowed {
    void AllocData(DLTensor* tensor, char* data) { tensor->data = data; }
    void FreeData(DLTensor*) {}
  };
  int64_t shape[] = {bytes.end - bytes.begin};
  return ffi::Tensor::FromNDAlloc(Borrowed(), ffi::ShapeView(shape, 1), DLDataType{kDLUInt, 8, 1},
                                  DLDevice{kDLCPU, 0}, bytes.begin);
}

}  // namespace mxplan
