// Kinds of errors by the names Python knows; see ffi/errors.h.
#include "ffi/errors.h"

#include <tvm/ffi/error.h>

namespace mxplan {

void Rethrow(const Error& error) {
  auto kind = [&] {
    switch (error.kind()) {
      case ErrorKind::kInvalidInput:
        return "tvm_mxplan.InvalidInputError";
      case ErrorKind::kInvalidType:
        return "TypeError";
      case ErrorKind::kUnsupported:
        return "tvm_mxplan.UnsupportedError";
      default:
        return "tvm_mxplan.InternalError";
    }
  };
  throw tvm::ffi::Error(kind(), error.what(), TVMFFIBacktrace(__FILE__, __LINE__, __func__, 0));
}

}  // namespace mxplan
