// Functions of oneDNN for Python: those of every library, and those that oneDNN alone has.
#include <oneapi/dnnl/dnnl_debug.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"
#include "ffi/library_functions.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

ffi::String Version() {
  const dnnl_version_t* version = dnnl_version();
  return ffi::String(Concat(version->major, ".", version->minor, ".", version->patch));
}

ffi::String Isa() { return ffi::String(dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa())); }

TVM_FFI_STATIC_INIT_BLOCK() {
  RegisterFunctionsOf("onednn");
  tvm::ffi::reflection::GlobalDef()
      .def("tvm_mxplan.onednn.version", Version)
      .def("tvm_mxplan.onednn.isa", Isa);
}

}  // namespace
}  // namespace mxplan
