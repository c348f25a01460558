// A bounds-checked reader; see reader.h.
#include "base/reader.h"

#include <cmath>

#include "base/error.h"

namespace mxplan {
namespace {

bool IsUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    auto lead = static_cast<unsigned char>(text[i]);
    int more = lead < 0x80         ? 0
               : (lead >> 5) == 6  ? 1
               : (lead >> 4) == 14 ? 2
               : (lead >> 3) == 30 ? 3
                                   : -1;
    if (more < 0 || i + more >= text.size()) return false;
    uint32_t code = more ? lead & (0x3Fu >> more) : lead;
    for (int k = 1; k <= more; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      if ((next >> 6) != 2) return false;
      code = (code << 6) | (next & 0x3Fu);
    }
    constexpr uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return false;
    i += more + 1;
  }
  return true;
}

}  // namespace

std::string_view ByteReader::Take(uint64_t size) {
  if (size > data_.size() - offset_) {
    ThrowInvalidInput(what_, " ends at byte ", data_.size(), ", ", size,
                      " more were expected at byte ", offset_);
  }
  std::string_view piece = data_.substr(offset_, size);
  offset_ += size;
  return piece;
}

size_t ByteReader::Count(size_t smallest) {
  size_t count = Number<uint32_t>();
  if (count > (data_.size() - offset_) / smallest) {
    ThrowInvalidInput("count ", count, " at byte ", offset_ - 4, " is more than the data can hold");
  }
  return count;
}

std::string ByteReader::Text(uint64_t size) {
  std::string_view text = Take(size);
  if (!IsUtf8(text)) ThrowInvalidInput("bad text before byte ", offset_);
  return std::string(text);
}

double ByteReader::Real() {
  auto number = Number<double>();
  if (std::isnan(number)) {
    ThrowInvalidInput("a real number before byte ", offset_, " is no number");
  }
  return number;
}

void ByteReader::Header(std::string_view magic, uint32_t version) {
  if (data_.substr(0, magic.size()) != magic) {
    ThrowInvalidInput("not a ", what_, ": the first four bytes are not ", magic);
  }
  Take(magic.size());
  auto found = Number<uint32_t>();
  if (found != version) {
    ThrowInvalidInput(what_, " version ", found, ", this build reads ", version);
  }
}

void ByteReader::Align(size_t alignment) { Take((alignment - offset_ % alignment) % alignment); }

void ByteReader::End() const {
  if (offset_ != data_.size()) {
    ThrowInvalidInput(data_.size() - offset_, " bytes after the end of the ", what_);
  }
}

}  // namespace mxplan
