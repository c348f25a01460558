// Kernels of a device whose runtime is not here: modules that load, are saved again, and have no
// function to run.
//
// TVM's loader of such modules is in a library that needs the device's driver.  Without it no
// library with kernels for the device could be opened, not even to be looked at.
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

class KernelsElsewhere final : public ffi::ModuleObj {
 public:
  KernelsElsewhere(std::string kind, ffi::Bytes bytes)
      : kind_(std::move(kind)), bytes_(std::move(bytes)) {}

  const char* kind() const final { return kind_.c_str(); }
  int GetPropertyMask() const final {
    return ffi::Module::kBinarySerializable | ffi::Module::kRunnable;
  }
  ffi::Bytes SaveToBytes() const final { return bytes_; }
  // Kernels are called by code for the CPU, which names the one that it does not find.
  ffi::Optional<ffi::Function> GetFunction(const ffi::String&) final { return std::nullopt; }

 private:
  std::string kind_;
  ffi::Bytes bytes_;
};

// Registers the loader of modules of `kind` unless there is one.
void StandIn(const ffi::String& kind) {
  const std::string loader = Concat("ffi.Module.load_from_bytes.", std::string(kind));
  if (ffi::Function::GetGlobal(loader).has_value()) return;
  auto load = [kind = std::string(kind)](const ffi::Bytes& bytes) {
    return ffi::Module(ffi::make_object<KernelsElsewhere>(kind, bytes));
  };
  ffi::Function::SetGlobal(loader, ffi::Function::FromTyped(load));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tvm_mxplan.kernels_elsewhere", StandIn);
}

}  // namespace
}  // namespace mxplan
