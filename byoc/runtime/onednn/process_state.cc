// Asking OpenMP and oneDNN; see process_state.h.
#include "onednn/process_state.h"

#include <omp.h>

namespace mxplan {

ProcessState CurrentState() {
  ProcessState state;
  state.threads = omp_get_max_threads();
  state.parallel = omp_in_parallel() != 0;
  state.isa = dnnl_get_effective_cpu_isa();
  dnnl_get_default_fpmath_mode(&state.math);
  return state;
}

}  // namespace mxplan
