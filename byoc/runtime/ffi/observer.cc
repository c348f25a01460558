// Calls of Python's functions, and who observes; see ffi/observer.h.
#include "ffi/observer.h"

#include <tvm/ffi/container/array.h>

#include <utility>

#include "ffi/tensors.h"

namespace mxplan {

namespace ffi = tvm::ffi;

namespace {

void Show(const ffi::Function& to, size_t step, const std::vector<Observer::Seen>& shown) {
  ffi::Array<int64_t> values;
  ffi::Array<ffi::Tensor> bytes;
  for (const Observer::Seen& seen : shown) {
    values.push_back(seen.value);
    bytes.push_back(ViewOfBytes(seen.bytes));
  }
  to(static_cast<int64_t>(step), values, bytes);
}

}  // namespace

FunctionObserver::FunctionObserver(ffi::Function begin, ffi::Function before, ffi::Function after)
    : begin_(std::move(begin)), before_(std::move(before)), after_(std::move(after)) {}

void FunctionObserver::Enter(ffi::Module module) { module_ = std::move(module); }

void FunctionObserver::Begin(const std::vector<int64_t>& symbols) {
  begin_(module_, ffi::Array<int64_t>(symbols.begin(), symbols.end()));
}

void FunctionObserver::Before(size_t step, const std::vector<Seen>& reads) {
  Show(before_, step, reads);
}

void FunctionObserver::After(size_t step, const std::vector<Seen>& results) {
  Show(after_, step, results);
}

}  // namespace mxplan
