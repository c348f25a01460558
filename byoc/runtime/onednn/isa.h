// Instruction sets that the runtime's own kernels may use: those that oneDNN uses.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ISA_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ISA_H_

#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

// oneDNN numbers instruction sets by the bits of what they contain.
inline bool HasIsa(dnnl::cpu_isa wanted) {
  auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}

// Of one thing that stands in a kernel's source once for each instruction set, the one for this
// machine.
template <typename T>
T ForThisIsa(T avx512, T avx2, T base) {
  return HasIsa(dnnl::cpu_isa::avx512_core) ? avx512 : HasIsa(dnnl::cpu_isa::avx2) ? avx2 : base;
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ISA_H_
