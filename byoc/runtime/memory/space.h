// The memory in which the tensors of a library live: the host's, or a device's.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_MEMORY_SPACE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_MEMORY_SPACE_H_

#include <cstdint>
#include <memory>
#include <string>

namespace mxplan {

// A kind of memory.  A library has one; it lives as long as the process and is safe to use from
// many threads.
class MemorySpace {
 public:
  enum class Kind : uint8_t { kHost, kCuda, kUnknown };

  MemorySpace() = default;
  virtual ~MemorySpace() = default;
  MemorySpace(const MemorySpace&) = delete;
  MemorySpace& operator=(const MemorySpace&) = delete;

  virtual Kind kind() const = 0;
  virtual const char* title() const = 0;  // "the CPU", in messages
  // Throws InvalidInput, `where` in front, unless the calling thread works on the device of that
  // number, of those that have this kind of memory.
  virtual void CheckDevice(int /*number*/, const std::string& /*where*/) const {}
  // Uninitialised bytes, at least 64-byte aligned, given back with the last copy of the pointer.
  // Throws std::bad_alloc or Error.
  virtual std::shared_ptr<char> Allocate(int64_t bytes) const = 0;
  // `bytes` of the host's memory, copied into this space; done when it returns.
  virtual std::shared_ptr<char> Copied(const char* host, int64_t bytes) const = 0;
};

// The memory that every library has that says nothing else.
const MemorySpace& HostMemory();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_MEMORY_SPACE_H_
