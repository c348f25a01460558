// The choice among the instruction sets that Winograd's transforms are compiled for.
#include "onednn/isa.h"
#include "onednn/winograd/kernels/kernels.h"

namespace mxplan::winograd {

Kernels SelectKernels(Variant variant) {
  return ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)(variant);
}

Kernels SelectShortKernels(Variant variant) {
  return HasIsa(dnnl::cpu_isa::avx512_core_bf16) ? Avx512Bf16Kernels(variant) : Kernels{};
}

}  // namespace mxplan::winograd
