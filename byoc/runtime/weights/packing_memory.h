// Memory for the packed forms of one region's constants.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_PACKING_MEMORY_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_PACKING_MEMORY_H_

#include <cstdint>
#include <memory>

#include "memory/buffer.h"

namespace mxplan {

// Large forms stand alone; small ones share one block, so that huge pages fit, and it goes when the
// last of them does.
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

// Bytes for what stands between two forms.  All constants of a module take turns in them: fresh
// pages cost more to clear than packing itself.
class PackingScratch {
 public:
  char* Get(int64_t bytes);

 private:
  Buffer buffer_;
  int64_t bytes_ = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_PACKING_MEMORY_H_
