// The host's memory as a space; see space.h.
#include "memory/space.h"

#include <cstring>

#include "memory/buffer.h"

namespace mxplan {
namespace {

class Host final : public MemorySpace {
 public:
  Kind kind() const override { return Kind::kHost; }
  const char* title() const override { return "the CPU"; }
  std::shared_ptr<char> Allocate(int64_t bytes) const override {
    auto buffer = std::make_shared<Buffer>(bytes);
    return {buffer, buffer->data()};
  }
  std::shared_ptr<char> Copied(const char* host, int64_t bytes) const override {
    std::shared_ptr<char> copy = Allocate(bytes);
    std::memcpy(copy.get(), host, static_cast<size_t>(bytes));
    return copy;
  }
};

}  // namespace

const MemorySpace& HostMemory() {
  static const auto* host = new Host();  // never destroyed: modules outlive main's statics
  return *host;
}

}  // namespace mxplan
