// Copies between devices for TVM's VM, by the tensors' devices; passes/devices/place_tensors.py
// writes the calls.
#include "cudnn/copies.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstring>

#include "base/error.h"
#include "ffi/errors.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

char* DataOf(const DLTensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

bool IsOnGpu(const DLTensor& tensor) { return tensor.device.device_type == kDLCUDA; }

void CheckPlace(const DLTensor& tensor) {
  if (!IsOnGpu(tensor) && tensor.device.device_type != kDLCPU) {
    ThrowUnsupported("a copy of a tensor on a device of type ",
                     static_cast<int>(tensor.device.device_type), ": expected a CPU or CUDA");
  }
  if (!ffi::IsContiguous(tensor)) ThrowInvalidInput("a copy of a tensor with gaps");
}

void Copy(const ffi::Tensor& source, const ffi::Tensor& destination) {
  Guard([&] {
    const DLTensor& from = *source.GetDLTensorPtr();
    const DLTensor& to = *destination.GetDLTensorPtr();
    CheckPlace(from);
    CheckPlace(to);
    size_t bytes = ffi::GetDataSize(from);
    if (!(from.dtype == to.dtype) || bytes != ffi::GetDataSize(to)) {
      ThrowInvalidInput("a copy of ", bytes, " bytes into ", ffi::GetDataSize(to),
                        ", or of another element type");
    }
    if (IsOnGpu(from) && IsOnGpu(to)) {
      ThrowUnsupported("a copy between two GPUs: functions are for one");
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
