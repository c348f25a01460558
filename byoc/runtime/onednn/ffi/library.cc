// What Python asks of the library itself: versions, what oneDNN would do, switches.
#include <oneapi/dnnl/dnnl_debug.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "debug/memory_debug.h"
#include "ffi/errors.h"
#include "program/program.h"
#include "region/describe.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

ffi::String DescribeProgram(const ffi::Bytes& program, const ffi::Array<int64_t>& symbols) {
  return Guard([&] {
    return ffi::String(Describe(Decode(std::string_view(program.data(), program.size())),
                                std::vector<int64_t>(symbols.begin(), symbols.end())));
  });
}

ffi::String Version() {
  const dnnl_version_t* version = dnnl_version();
  return ffi::String(Concat(version->major, ".", version->minor, ".", version->patch));
}

ffi::String Abi() {
  return ffi::String(
      Concat(TVM_FFI_VERSION_MAJOR, ".", TVM_FFI_VERSION_MINOR, ".", TVM_FFI_VERSION_PATCH));
}

ffi::String Isa() { return ffi::String(dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa())); }

// What a module of any kind writes of itself into an exported library, its imports left out.
ffi::Bytes ModuleBytes(const ffi::Module& module) { return module->SaveToBytes(); }

// What to check at run time; 1 is memory, 0 nothing.
void SetDebug(int64_t what) { SetMemoryDebug(what != 0); }

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("tvm_mxplan.onednn.describe", DescribeProgram)
      .def("tvm_mxplan.onednn.version", Version)
      .def("tvm_mxplan.onednn.abi", Abi)
      .def("tvm_mxplan.onednn.isa", Isa)
      .def("tvm_mxplan.onednn.set_debug", SetDebug)
      .def("tvm_mxplan.module_bytes", ModuleBytes);
}

}  // namespace
}  // namespace mxplan

// byoc/onednn/library.py finds this text in the file and compares it with the tvm-ffi installed,
// before it loads anything: registering with another version could crash.
#define MXPLAN_TEXT(x) #x
#define MXPLAN_STAMP(a, b, c) \
  "mxplan-tvm-ffi=" MXPLAN_TEXT(a) "." MXPLAN_TEXT(b) "." MXPLAN_TEXT(c) ";"
extern "C" __attribute__((visibility("default"))) const char* MxplanTvmFfiStamp() {
  return MXPLAN_STAMP(TVM_FFI_VERSION_MAJOR, TVM_FFI_VERSION_MINOR, TVM_FFI_VERSION_PATCH);
}
