// Owned, aligned memory; large buffers ask for huge pages.
#include "buffer.h"

#include <sys/mman.h>

#include <new>

namespace mxplan {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

}  // namespace

void WishHugePages(char* data, int64_t bytes) {
  auto begin = (reinterpret_cast<uintptr_t>(data) + kHugePage - 1) / kHugePage * kHugePage;
  auto end =
      (reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(bytes)) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

Buffer::Buffer(int64_t bytes) {
  bool huge = bytes >= kHugePage;
  int64_t alignment = huge ? kHugePage : kAlignment;
  if (bytes < 0 || bytes > INT64_MAX - alignment) throw std::bad_alloc();
  int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = nullptr;
  if (posix_memalign(&data, static_cast<size_t>(alignment),
                     static_cast<size_t>(rounded > 0 ? rounded : alignment)) != 0) {
    throw std::bad_alloc();
  }
  data_.reset(static_cast<char*>(data));
  WishHugePages(data_.get(), rounded);
}

}  // namespace mxplan
