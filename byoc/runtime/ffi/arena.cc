// Arenas of functions, for TVM's VM: one at a multiple of a huge page inside of a longer one that
// begins anywhere, and the tensors in it.  passes/storage/arena_bindings.py writes the calls.
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "memory/buffer.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

char* DataOf(const ffi::Tensor& tensor) {
  const DLTensor* raw = tensor.GetDLTensorPtr();
  return static_cast<char*>(raw->data) + raw->byte_offset;
}

// A tensor whose bytes belong to `owner`.
ffi::Tensor ViewOf(const ffi::Tensor& owner, char* data, const ffi::ShapeView& shape,
                   DLDataType dtype) {
  struct Borrowed {
    ffi::Tensor owner;
    void AllocData(DLTensor* tensor, char* data) { tensor->data = data; }
    void FreeData(DLTensor*) {}
  };
  return ffi::Tensor::FromNDAlloc(Borrowed{owner}, shape, dtype, owner.device(), data);
}

ffi::Tensor Align(const ffi::Tensor& longer, int64_t bytes) {
  char* begin = DataOf(longer);
  auto over = static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % kHugePage);
  int64_t skipped = over > 0 ? kHugePage - over : 0;
  if (bytes < 0 || skipped + bytes > longer.numel()) {
    TVM_FFI_THROW(ValueError) << "an arena of " << bytes << " bytes does not fit into "
                              << longer.numel() << " from address " << static_cast<void*>(begin);
  }
  return ViewOf(longer, begin + skipped, ffi::ShapeView(&bytes, 1), longer.dtype());
}

ffi::Tensor TensorIn(const ffi::Tensor& arena, int64_t offset, const ffi::Shape& shape,
                     DLDataType dtype) {
  auto bytes = static_cast<int64_t>(ffi::GetDataSize(static_cast<size_t>(shape.Product()), dtype));
  if (offset < 0 || offset > arena.numel() - bytes) {
    TVM_FFI_THROW(ValueError) << bytes << " bytes at offset " << offset << " leave the arena of "
                              << arena.numel();
  }
  return ViewOf(arena, DataOf(arena) + offset, shape, dtype);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef().def("tvm_mxplan.arena.align", Align).def("tvm_mxplan.arena.tensor", TensorIn);
}

}  // namespace
}  // namespace mxplan
