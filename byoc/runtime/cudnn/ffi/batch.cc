// A named batch in a function for more rows, for TVM's VM: whether a call's rows fit, rows of zeros
// behind them, the first rows of what came.  passes/sizes/dispatch_sizes.py writes the calls.
//
// Rows are on the first axis.  Whatever the device, its memory is filled in the order of its work.
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "cudnn/copies.h"
#include "cudnn/device.h"
#include "ffi/errors.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

char* DataOf(const DLTensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

int64_t RowsOf(const ffi::Shape& batch) { return batch.size() == 1 ? batch[0] : -1; }

bool Fits(const ffi::Shape& batch, int64_t size) { return RowsOf(batch) <= size; }

bool Is(const ffi::Shape& batch, int64_t size) { return RowsOf(batch) == size; }

// True if both are rows of the same shape and type, in one piece, on one device.
bool SameRows(const DLTensor& a, const DLTensor& b) {
  if (a.ndim != b.ndim || a.ndim == 0 || !(a.dtype == b.dtype)) return false;
  if (a.device.device_type != b.device.device_type) return false;
  for (int i = 1; i < a.ndim; ++i) {
    if (a.shape[i] != b.shape[i]) return false;
  }
  return ffi::IsContiguous(a) && ffi::IsContiguous(b);
}

void Pad(const ffi::Tensor& rows, const ffi::Tensor& padded) {
  Guard([&] {
    const DLTensor& from = *rows.GetDLTensorPtr();
    const DLTensor& to = *padded.GetDLTensorPtr();
    if (!SameRows(from, to) || from.shape[0] > to.shape[0]) {
      ThrowInvalidInput(
          "batch: an input does not fit into one of more rows; expected a tensor in one ",
          "piece, of the element type and shape that the model states");
    }
    auto bytes = static_cast<int64_t>(ffi::GetDataSize(from));
    auto more = static_cast<int64_t>(ffi::GetDataSize(to)) - bytes;
    if (to.device.device_type == kDLCUDA) {
      CudaMemory().CheckDevice(to.device.device_id, "batch: an input");
      CopyOnGpu(DataOf(to), DataOf(from), bytes);
      ClearOnGpu(DataOf(to) + bytes, more);
    } else if (to.device.device_type == kDLCPU) {
      if (bytes > 0) std::memcpy(DataOf(to), DataOf(from), static_cast<size_t>(bytes));
      if (more > 0) std::memset(DataOf(to) + bytes, 0, static_cast<size_t>(more));
    } else {
      ThrowUnsupported("batch: an input on a device of type ",
                       static_cast<int>(to.device.device_type), ", expected a CPU or CUDA");
    }
    return 0;
  });
}

// A view of the rows that are a call's own.
ffi::Tensor First(const ffi::Tensor& owner, const ffi::Shape& shape) {
  return Guard([&] {
    const DLTensor& whole = *owner.GetDLTensorPtr();
    auto bytes = ffi::GetDataSize(static_cast<size_t>(shape.Product()), whole.dtype);
    if (!ffi::IsContiguous(whole) || bytes > ffi::GetDataSize(whole)) {
      ThrowInternal("batch: a result has fewer rows than its function was called with");
    }
    struct Borrowed {
      ffi::Tensor owner;
      void AllocData(DLTensor* tensor, char* data) { tensor->data = data; }
      void FreeData(DLTensor*) {}
    };
    return ffi::Tensor::FromNDAlloc(Borrowed{owner}, ffi::ShapeView(shape), whole.dtype,
                                    whole.device, DataOf(whole));
  });
}

void Refuse(const ffi::Shape& batch, const ffi::String& sizes) {
  Guard([&] {
    ThrowInvalidInput("a batch of ", RowsOf(batch), "; the function was compiled for ",
                      std::string(sizes),
                      "; compile it with larger bounds, or with further batch_sizes");
    return 0;
  });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("tvm_mxplan.batch.fits", Fits)
      .def("tvm_mxplan.batch.is", Is)
      .def("tvm_mxplan.batch.pad", Pad)
      .def("tvm_mxplan.batch.first", First)
      .def("tvm_mxplan.batch.refuse", Refuse);
}

}  // namespace
}  // namespace mxplan
