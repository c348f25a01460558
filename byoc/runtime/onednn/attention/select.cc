// The choice among the instruction sets that attention is compiled for.
#include "onednn/attention/kernels.h"
#include "onednn/isa.h"

namespace mxplan::attention {

Kernels SelectKernels() { return ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)(); }

ShortKernels SelectShortKernels() {
  if (HasIsa(dnnl::cpu_isa::avx512_core_amx)) return AmxKernels();
  return HasIsa(dnnl::cpu_isa::avx512_core_bf16) ? Avx512Bf16Kernels() : ShortKernels{};
}

}  // namespace mxplan::attention
