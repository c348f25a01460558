// Functions of any library by the names Python knows; see library_functions.h.
#include "ffi/library_functions.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "debug/memory_debug.h"
#include "debug/step_clock.h"
#include "ffi/errors.h"
#include "ffi/observer.h"
#include "library/library.h"
#include "program/program.h"
#include "region/describe.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

ffi::String Abi() {
  return ffi::String(
      Concat(TVM_FFI_VERSION_MAJOR, ".", TVM_FFI_VERSION_MINOR, ".", TVM_FFI_VERSION_PATCH));
}

// The bytes that a module of any kind writes of itself into an exported library, without imports.
ffi::Bytes ModuleBytes(const ffi::Module& module) { return module->SaveToBytes(); }

// Checks at run time: 1 is memory, 0 nothing.
void SetDebug(int64_t what) { SetMemoryDebug(what != 0); }

void Observe(const ffi::Optional<ffi::Function>& begin, const ffi::Optional<ffi::Function>& before,
             const ffi::Optional<ffi::Function>& after) {
  bool any = begin.has_value() && before.has_value() && after.has_value();
  SetThreadObserver(
      any ? std::make_shared<FunctionObserver>(begin.value(), before.value(), after.value())
          : nullptr);
}

// Begins to take the time of the calling thread's steps; or ends it, and gives their nanoseconds.
ffi::Array<int64_t> ClockSteps(bool begin) {
  if (begin) {
    SetThreadObserver(std::make_shared<StepClock>());
    return {};
  }
  const auto* clock = dynamic_cast<const StepClock*>(ThreadObserver().get());
  if (clock == nullptr) ThrowInvalidInput("clock_steps: expected to have begun in this thread");
  ffi::Array<int64_t> taken(clock->nanoseconds().begin(), clock->nanoseconds().end());
  SetThreadObserver(nullptr);
  return taken;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tvm_mxplan.module_bytes", ModuleBytes);
}

}  // namespace

void RegisterFunctionsOf(const std::string& library) {
  auto describe = [library](const ffi::Bytes& program, const ffi::Array<int64_t>& symbols) {
    return Guard([&] {
      return ffi::String(Describe(Decode(std::string_view(program.data(), program.size())),
                                  FindLibrary(library),
                                  std::vector<int64_t>(symbols.begin(), symbols.end())));
    });
  };
  const std::string prefix = Concat("tvm_mxplan.", library, ".");
  tvm::ffi::reflection::GlobalDef()
      .def((prefix + "describe").c_str(), describe)
      .def((prefix + "abi").c_str(), Abi)
      .def((prefix + "set_debug").c_str(), SetDebug)
      .def((prefix + "observe").c_str(), Observe)
      .def((prefix + "clock_steps").c_str(),
           [](bool begin) { return Guard([&] { return ClockSteps(begin); }); });
  RegisterModulesOf(library);
}

}  // namespace mxplan

// The Python that loads the runtime finds this text in the file and compares it with the tvm-ffi
// installed, before it loads anything: registering with another version could crash.
#define MXPLAN_TEXT(x) #x
#define MXPLAN_STAMP(a, b, c) \
  "mxplan-tvm-ffi=" MXPLAN_TEXT(a) "." MXPLAN_TEXT(b) "." MXPLAN_TEXT(c) ";"
extern "C" __attribute__((visibility("default"))) const char* MxplanTvmFfiStamp() {
  return MXPLAN_STAMP(TVM_FFI_VERSION_MAJOR, TVM_FFI_VERSION_MINOR, TVM_FFI_VERSION_PATCH);
}
