// The kernels of this processor.
#include "host/kernels/kernels.h"

namespace mxplan::host {
namespace {

Kernels Best() {
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide) return Avx512Kernels();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Avx2Kernels();
  return BaseKernels();
}

}  // namespace

const Kernels& KernelsHere() {
  static const Kernels kernels = Best();
  return kernels;
}

}  // namespace mxplan::host
