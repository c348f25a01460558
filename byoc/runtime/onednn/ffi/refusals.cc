// Refusals of implementations as Python sees them.
#include "onednn/primitives/refusals.h"

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>

#include "ffi/errors.h"
#include "onednn/primitives/errata.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

void RefuseImplementation(const ffi::String& descriptor, const ffi::String& implementation,
                          const ffi::String& reason) {
  Guard([&] { Refuse(descriptor, implementation, reason); });
}

ffi::String Refusals() { return ffi::String(RegisteredRefusalsJson()); }
ffi::String ErrataTable() { return ffi::String(ErrataJson()); }
void SwitchErrata(int64_t on) { SetErrata(on != 0); }

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("tvm_mxplan.onednn.refuse", RefuseImplementation)
      .def("tvm_mxplan.onednn.forget_refusals", ForgetRefusals)
      .def("tvm_mxplan.onednn.refusals", Refusals)
      .def("tvm_mxplan.onednn.errata", ErrataTable)
      .def("tvm_mxplan.onednn.set_errata", SwitchErrata);
}

}  // namespace
}  // namespace mxplan
