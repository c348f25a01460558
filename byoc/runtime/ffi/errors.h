// Errors of the runtime as those of Python.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_FFI_ERRORS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_FFI_ERRORS_H_

#include <new>

#include "base/error.h"

namespace mxplan {

// Throws tvm-ffi's error of the kind that tvm_mxplan/errors.py registers.
[[noreturn]] void Rethrow(const Error& error);

// Calls `function`; what it throws reaches Python as one of ours.
template <typename F>
auto Guard(const F& function) -> decltype(function()) {
  try {
    return function();
  } catch (const Error& error) {
    Rethrow(error);
  } catch (const std::bad_alloc&) {
    Rethrow(Error(ErrorKind::kUnsupported, "out of memory"));
  }
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_FFI_ERRORS_H_
