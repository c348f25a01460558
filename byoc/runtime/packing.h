// The ways to make a constant's packed form, done once when a region is loaded.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

enum class Packing : uint8_t {
  kReorder,     // into another layout
  kWinogradF2,  // a convolution's filters [K, C, 3, 3] into matrices [16, C, K], padded
  kWinogradF4,  // likewise, [36, C, K]
};

void PackConstant(Packing packing, const dnnl::memory::desc& from, const char* src,
                  const dnnl::memory::desc& to, char* dst);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_
