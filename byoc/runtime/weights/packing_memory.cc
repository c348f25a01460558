// Memory for packed forms; see packing_memory.h.
#include "weights/packing_memory.h"

#include "base/error.h"

namespace mxplan {
namespace {

std::shared_ptr<char> NewBlock(int64_t bytes) {
  auto buffer = std::make_shared<Buffer>(bytes);
  return {buffer, buffer->data()};
}

}  // namespace

bool PackingMemory::IsSmall(int64_t bytes) { return AlignUp(bytes) < kHugePage; }

std::shared_ptr<char> PackingMemory::Allocate(int64_t bytes) {
  if (!IsSmall(bytes)) return NewBlock(bytes);
  if (!block_) block_ = NewBlock(small_bytes_);
  std::shared_ptr<char> data(block_, block_.get() + used_);
  used_ += AlignUp(bytes);
  if (used_ > small_bytes_) ThrowInternal("more small weights than were announced");
  return data;
}

char* PackingScratch::Get(int64_t bytes) {
  if (bytes > bytes_) {
    buffer_ = {};  // before the larger one is there
    buffer_ = Buffer(bytes);
    bytes_ = bytes;
  }
  return buffer_.data();
}

}  // namespace mxplan
