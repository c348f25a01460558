// Packing one constant: memory for the packed form, and the reorder into it.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

// Bytes that mapped constants are read in at a time, so that few of their pages are resident.
constexpr int64_t kSliceBytes = int64_t{8} << 20;

// Memory for the packed forms of one region.  Large ones stand alone; small ones share one block,
// so that huge pages fit, and it goes when the last of them does.
class PackingMemory {
 public:
  // `small_bytes` is the sum over all small forms that will be asked for, each aligned.
  explicit PackingMemory(int64_t small_bytes) : small_bytes_(small_bytes) {}

  static bool IsSmall(int64_t bytes);
  std::shared_ptr<char> Allocate(int64_t bytes);

 private:
  int64_t small_bytes_;
  std::shared_ptr<char> block_;
  int64_t used_ = 0;
};

// Reorders `src` into `dst`.  `mapped`: src is pages of a file, which are given back once read.
void Reorder(const dnnl::memory::desc& from, const char* src, bool mapped,
             const dnnl::memory::desc& to, char* dst);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PACKING_H_
