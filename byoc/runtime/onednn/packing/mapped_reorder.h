// Reordering a constant once, also one whose bytes are pages of a mapped file.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_MAPPED_REORDER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_MAPPED_REORDER_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

// Reorders `src` into `dst`.  `mapped`: src is pages of a file, which are given back once read.
void Reorder(const dnnl::memory::desc& from, const char* src, bool mapped,
             const dnnl::memory::desc& to, char* dst);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_MAPPED_REORDER_H_
