// Calls of Python's functions, and who observes; see ffi/observer.h.
#include "ffi/observer.h"

#include <tvm/ffi/container/array.h>

#include <utility>

#include "ffi/tensors.h"

namespace mxplan {

namespace ffi = tvm::ffi;

FunctionObserver::FunctionObserver(ffi::Function begin, ffi::Function before, ffi::Function after)
    : begin_(std::move(begin)), before_(std::move(before)), after_(std::move(after)) {}

void FunctionObserver::Enter(ffi::Module module) { module_ = std::move(module); }

void FunctionObserver::Begin(const std::vector<int64_t>& symbols) {
  begin_(module_, ffi::Array<int64_t>(symbols.begin(), symbols.end()));
}

void FunctionObserver::Before(size_t step, const std::vector<Seen>& reads) {
  ffi::Array<int64_t> values;
  ffi::Array<ffi::Tensor> bytes;
  for (const Seen& seen : reads) {
    values.push_back(seen.value);
    bytes.push_back(ViewOfBytes(seen.bytes));
  }
  before_(static_cast<int64_t>(step), values, bytes);
}

void FunctionObserver::After(size_t step, const Seen& dst) {
  after_(static_cast<int64_t>(step), static_cast<int64_t>(dst.value), ViewOfBytes(dst.bytes));
}

}  // namespace mxplan
