// Functions of Python's as an observer of runs.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_FFI_OBSERVER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_FFI_OBSERVER_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "debug/observer.h"

namespace mxplan {

// begin(module, symbols) is called for each run, before(step, values, bytes) and after(step, value,
// bytes) around each step; the tensors of bytes are views that are good until the function returns.
class FunctionObserver final : public Observer {
 public:
  FunctionObserver(tvm::ffi::Function begin, tvm::ffi::Function before, tvm::ffi::Function after);

  // The run of this module is about to begin.
  void Enter(tvm::ffi::Module module);

  void Begin(const std::vector<int64_t>& symbols) override;
  void Before(size_t step, const std::vector<Seen>& reads) override;
  void After(size_t step, const std::vector<Seen>& results) override;

 private:
  tvm::ffi::Function begin_, before_, after_;
  tvm::ffi::Optional<tvm::ffi::Module> module_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_FFI_OBSERVER_H_
