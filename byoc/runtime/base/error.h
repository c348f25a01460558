// The errors that the runtime throws.  Nothing here knows the FFI: ffi/errors.cc turns a kind into
// the matching Python exception, and everything below it only says what went wrong and whose fault
// it is.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_BASE_ERROR_H_
#define TVM_MXPLAN_BYOC_RUNTIME_BASE_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>

namespace mxplan {

enum class ErrorKind {
  kInvalidInput,  // the caller handed over something wrong (a shape, a file): InvalidInputError
  kInvalidType,   // the caller handed over the wrong type: TypeError
  kUnsupported,   // the library has no primitive for this: UnsupportedError
  kInternal,      // this project contradicts itself: InternalError
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Concatenates anything that can be streamed.
template <typename... Parts>
std::string Concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <typename... Parts>
[[noreturn]] void ThrowInvalidInput(const Parts&... parts) {
  throw Error(ErrorKind::kInvalidInput, Concat(parts...));
}

template <typename... Parts>
[[noreturn]] void ThrowUnsupported(const Parts&... parts) {
  throw Error(ErrorKind::kUnsupported, Concat(parts...));
}

template <typename... Parts>
[[noreturn]] void ThrowInternal(const Parts&... parts) {
  throw Error(ErrorKind::kInternal, Concat(parts...));
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_BASE_ERROR_H_
