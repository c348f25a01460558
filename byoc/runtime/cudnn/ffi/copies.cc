// Copies between devices for TVM's VM, by the tensors' devices; passes/devices/place_tensors.py
// writes the calls.
#include "cudnn/copies.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "cudnn/device.h"
#include "ffi/errors.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

char* DataOf(const DLTensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

bool IsOnGpu(const DLTensor& tensor) { return tensor.device.device_type == kDLCUDA; }

std::string ToText(const DLTensor& tensor) {
  std::string shape;
  for (int i = 0; i < tensor.ndim; ++i) {
    shape += Concat(i > 0 ? ", " : "", tensor.shape[i]);
  }
  return Concat("[", shape, "] of ", std::string(ffi::DLDataTypeToString(tensor.dtype)));
}

void CheckPlace(const DLTensor& tensor, const char* role) {
  if (!IsOnGpu(tensor) && tensor.device.device_type != kDLCPU) {
    ThrowUnsupported("copy between devices: its ", role, ", ", ToText(tensor),
                     ", is on a device of type ", static_cast<int>(tensor.device.device_type),
                     ", expected a CPU or CUDA");
  }
  if (IsOnGpu(tensor)) {
    CudaMemory().CheckDevice(tensor.device.device_id,
                             Concat("copy between devices: its ", role, ", ", ToText(tensor), ","));
  }
  if (!ffi::IsContiguous(tensor)) {
    ThrowInvalidInput("copy between devices: its ", role, ", ", ToText(tensor),
                      ", has strides with gaps; hand over a contiguous tensor");
  }
}

void Copy(const ffi::Tensor& source, const ffi::Tensor& destination) {
  Guard([&] {
    const DLTensor& from = *source.GetDLTensorPtr();
    const DLTensor& to = *destination.GetDLTensorPtr();
    CheckPlace(from, "source");
    CheckPlace(to, "destination");
    size_t bytes = ffi::GetDataSize(from);
    if (!(from.dtype == to.dtype) || bytes != ffi::GetDataSize(to)) {
      ThrowInvalidInput("copy between devices: its source is ", ToText(from), ", its destination ",
                        ToText(to), "; expected one element type and equal bytes");
    }
    if (IsOnGpu(from) && IsOnGpu(to)) {
      ThrowUnsupported("copy between devices: its source is on GPU ", from.device.device_id,
                       ", its destination on GPU ", to.device.device_id,
                       "; a compiled function is for a CPU and one GPU");
    }
    auto count = static_cast<int64_t>(bytes);
    if (IsOnGpu(to)) {
      CopyToGpu(DataOf(to), DataOf(from), count);
    } else if (IsOnGpu(from)) {
      CopyToCpu(DataOf(to), DataOf(from), count);
    } else {
      std::memcpy(DataOf(to), DataOf(from), bytes);
    }
    return 0;
  });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tvm_mxplan.devices.copy", Copy);
}

}  // namespace
}  // namespace mxplan
