// Asking OpenMP and oneDNN; see process_state.h.
#include "onednn/process_state.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

ProcessState CurrentState() {
  ProcessState state;
  state.threads = omp_get_max_threads();
  state.parallel = omp_in_parallel() != 0;
  dnnl_fpmath_mode_t math = dnnl_fpmath_mode_strict;
  dnnl_get_default_fpmath_mode(&math);
  state.settings = {static_cast<int64_t>(dnnl_get_effective_cpu_isa()), static_cast<int64_t>(math)};
  return state;
}

}  // namespace mxplan
