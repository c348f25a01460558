// Owned, aligned memory.  Large buffers ask for huge pages, and go back to the system at once.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_MEMORY_BUFFER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_MEMORY_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace mxplan {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

inline int64_t AlignUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Asks for huge pages where they fit wholly into `bytes` bytes from `data`: a wish, not a need.
void WishHugePages(char* data, int64_t bytes);

class Buffer {
 public:
  Buffer() = default;
  // Uninitialised bytes, at least 64-byte aligned.  Throws std::bad_alloc.
  explicit Buffer(int64_t bytes);

  char* data() const { return data_.get(); }

 private:
  struct Free {
    int64_t mapped;  // bytes; 0: from the heap
    Free() : mapped(0) {}
    explicit Free(int64_t bytes) : mapped(bytes) {}
    void operator()(char* data) const;
  };
  std::unique_ptr<char, Free> data_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_MEMORY_BUFFER_H_
