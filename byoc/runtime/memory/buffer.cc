// Owned, aligned memory; large buffers stand on huge pages as far as these are whole.
#include "memory/buffer.h"

#include <sys/mman.h>

#include <new>

namespace mxplan {
namespace {

// Maps `bytes` at a multiple of a huge page: a little more is mapped, and what is over given back.
char* MapAligned(int64_t bytes) {
  auto size = static_cast<size_t>(bytes + kHugePage);
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<char*>(mapped);
  auto over = static_cast<size_t>(reinterpret_cast<uintptr_t>(begin) % kHugePage);
  size_t before = over > 0 ? kHugePage - over : 0;
  if (before > 0) munmap(begin, before);
  constexpr int64_t kPage = 4096;
  auto used = static_cast<size_t>((bytes + kPage - 1) / kPage * kPage);
  if (size > before + used) munmap(begin + before + used, size - before - used);
  return begin + before;
}

}  // namespace

// A wish, not a need.  Pages at the ends stay small, or they would take huge ones for themselves.
void WishHugePages(char* data, int64_t bytes) {
  auto begin = (reinterpret_cast<uintptr_t>(data) + kHugePage - 1) / kHugePage * kHugePage;
  auto end =
      (reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(bytes)) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

Buffer::Buffer(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX - 2 * kHugePage) throw std::bad_alloc();
  if (bytes >= kHugePage) {
    data_ = {MapAligned(bytes), Free(bytes)};
    WishHugePages(data_.get(), bytes);
    return;
  }
  void* data = nullptr;
  auto size = static_cast<size_t>(AlignUp(bytes > 0 ? bytes : 1));
  if (posix_memalign(&data, kAlignment, size) != 0) throw std::bad_alloc();
  data_.reset(static_cast<char*>(data));
}

void Buffer::Free::operator()(char* data) const {
  if (mapped > 0) {
    munmap(data, static_cast<size_t>(mapped));
  } else {
    std::free(data);
  }
}

}  // namespace mxplan
