// What the process and the calling thread have set that decides which primitives oneDNN makes, and
// how many bytes they need: a primitive is for the threads, instruction set and mode it was made
// with.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROCESS_STATE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROCESS_STATE_H_

#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

struct ProcessState {
  int threads = 1;        // that OpenMP gives the calling thread
  bool parallel = false;  // called from inside of a parallel region, where OpenMP gives no more
  dnnl_cpu_isa_t isa = dnnl_cpu_isa_default;
  dnnl_fpmath_mode_t math = dnnl_fpmath_mode_strict;

  bool operator==(const ProcessState& other) const {
    return threads == other.threads && parallel == other.parallel && isa == other.isa &&
           math == other.math;
  }
};

// Of the calling thread, now.
ProcessState CurrentState();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROCESS_STATE_H_
