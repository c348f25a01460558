// Rows of channels, each scaled, shifted and cut alike, as a plain function on pointers.
//
//   dst[c] = min(max(src[c] * scale[c] + shift[c], least), most)
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CHANNELWISE_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CHANNELWISE_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"

namespace mxplan::channelwise {

struct Rows {
  int64_t channels = 0;
  const float* scale = nullptr;  // none: 1 everywhere
  const float* shift = nullptr;  // none: 0 everywhere
  float least = 0, most = 0;     // what is no number stays
};

// Rows [begin, end), one behind the other on both sides.
using Run = void (*)(const Rows& rows, const void* src, void* dst, int64_t begin, int64_t end);

struct Kernel {
  const char* name = "";
  Run run[kReals][kReals] = {};  // by the types of src and dst
};

Kernel Avx512Bf16Kernel();

}  // namespace mxplan::channelwise

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CHANNELWISE_KERNELS_H_
