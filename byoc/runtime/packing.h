// The ways to make a constant's packed form, done once when a region is loaded.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "desc_hash.h"
#include "packing_memory.h"

namespace mxplan {

struct Packing {
  enum class Kind : uint8_t {
    kReorder,     // into another layout
    kReread,      // into the order `through`, whose bytes are then those of the shape in `seen`
    kWinogradF2,  // a convolution's filters [K, C, 3, 3] into matrices [16, C, K], padded
    kWinogradF4,  // likewise, [36, C, K]
  };
  Kind kind = Kind::kReorder;
  dnnl::memory::desc through = {}, seen = {};  // kReread

  bool operator==(const Packing& other) const {
    if (kind != other.kind || kind != Kind::kReread) return kind == other.kind;
    return SameDesc(through, other.through) && SameDesc(seen, other.seen);
  }
};

// `mapped`: src is pages of a file, which are given back once read.
void PackConstant(const Packing& packing, const dnnl::memory::desc& from, const char* src,
                  bool mapped, const dnnl::memory::desc& to, char* dst, PackingScratch* scratch);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_
