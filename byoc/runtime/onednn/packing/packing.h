// The ways to make a constant's packed form, done once when a region is loaded.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_PACKING_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_PACKING_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/desc_hash.h"
#include "onednn/winograd/kernels/kernels.h"
#include "weights/packing_memory.h"

namespace mxplan {

struct Packing {
  enum class Kind : uint8_t {
    kReorder,   // into another layout
    kReread,    // into the order `through`, whose bytes are then those of the shape in `seen`
    kWinograd,  // one group of a convolution's filters into matrices [patch elements, C, K], padded
  };
  Kind kind = Kind::kReorder;
  dnnl::memory::desc through = {}, seen = {};          // kReread
  winograd::Variant variant = winograd::Variant::kF2;  // kWinograd
  int64_t group = 0;                                   // kWinograd
  bool turned = false;                                 // kWinograd: filters by 180 degrees

  bool operator==(const Packing& other) const {
    if (kind != other.kind || variant != other.variant) return false;
    if (group != other.group || turned != other.turned) return false;
    return kind != Kind::kReread ||
           (SameDesc(through, other.through) && SameDesc(seen, other.seen));
  }
};

// `mapped`: src is pages of a file, which are given back once read.
void PackConstant(const Packing& packing, const dnnl::memory::desc& from, const char* src,
                  bool mapped, const dnnl::memory::desc& to, char* dst, PackingScratch* scratch);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_PACKING_H_
