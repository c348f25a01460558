// Functions of the host library for Python: those of every library, its instruction set and the
// number of its threads.
#include <omp.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "ffi/library_functions.h"
#include "host/kernels/kernels.h"

namespace mxplan {
namespace {

tvm::ffi::String Isa() { return tvm::ffi::String(host::KernelsHere().isa); }
int64_t Threads() { return omp_get_max_threads(); }
void SetThreads(int64_t count) { omp_set_num_threads(static_cast<int>(count)); }
int64_t ThreadLimit() { return omp_get_dynamic() != 0 ? 1 : omp_get_thread_limit(); }

TVM_FFI_STATIC_INIT_BLOCK() {
  RegisterFunctionsOf("host");
  tvm::ffi::reflection::GlobalDef()
      .def("tvm_mxplan.host.isa", Isa)
      .def("tvm_mxplan.host.threads", Threads)
      .def("tvm_mxplan.host.set_threads", SetThreads)
      .def("tvm_mxplan.host.thread_limit", ThreadLimit);
}

}  // namespace
}  // namespace mxplan
