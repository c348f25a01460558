// The choice among the instruction sets that Winograd's transforms are compiled for.
#include <oneapi/dnnl/dnnl.hpp>

#include "winograd_kernels.h"

namespace mxplan::winograd {

Kernels SelectKernels(Variant variant) {
  // oneDNN numbers instruction sets by the bits of what they contain.
  auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  auto has = [isa](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (has(dnnl::cpu_isa::avx512_core)) return Avx512Kernels(variant);
  if (has(dnnl::cpu_isa::avx2)) return Avx2Kernels(variant);
  return BaseKernels(variant);
}

}  // namespace mxplan::winograd
