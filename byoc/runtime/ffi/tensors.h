// Tensors of TVM as the runtime sees them, and back.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_FFI_TENSORS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_FFI_TENSORS_H_

#include <tvm/ffi/container/tensor.h>

#include <cstdint>

#include "debug/value_bytes.h"
#include "region/signature.h"
#include "weights/constant.h"

namespace mxplan {

TensorRef ToRef(const DLTensor& tensor);

// Keeps the tensor alive.  Throws InvalidInput, by the constant's number, if it is not contiguous.
ConstantData ToConstant(const tvm::ffi::Tensor& tensor, int64_t number);

// The bytes of a constant as they are stored; the tensor keeps them alive.
tvm::ffi::Tensor TensorOfBytes(const ConstantData& constant);

// A tensor of bytes that somebody else owns.
tvm::ffi::Tensor ViewOfBytes(const Span& bytes);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_FFI_TENSORS_H_
