// Layouts by their tags; see layout.h.
#include "host/layout.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace mxplan::host {
namespace {

constexpr int64_t kMostInBlocks = 1 << 24;  // whose places are kept

[[noreturn]] void ThrowTag(const std::string& tag, size_t rank) {
  ThrowUnsupported("layout ", tag, ": expected one of rank ", rank,
                   ", such as abcd, acdb or aBcd16b");
}

// Reads the blocks behind the letters, each a number and an axis, outermost first.
void ReadBlocks(const std::string& tag, PhysicalLayout* layout) {
  const size_t rank = layout->padded.size();
  size_t at = rank;
  while (at < tag.size()) {
    int64_t size = 0;
    const size_t first = at;
    for (; at < tag.size() && std::isdigit(static_cast<unsigned char>(tag[at])) != 0; ++at) {
      size = size * 10 + (tag[at] - '0');
      if (size > INT16_MAX) ThrowTag(tag, rank);
    }
    const auto axis = at < tag.size() ? static_cast<size_t>(tag[at] - 'a') : rank;
    if (at == first || size < 1 || axis >= rank) ThrowTag(tag, rank);
    layout->blocks.push_back(size);
    layout->block_axes.push_back(static_cast<int64_t>(axis));
    ++at;
  }
}

// Parts of an index along an axis that is in blocks: the innermost block counts
// single elements, each further one whole blocks of them.
class Digits {
 public:
  Digits(const PhysicalLayout& layout, size_t axis) : outer_stride_(layout.strides[axis]) {
    int64_t stride = 1;
    for (size_t i = layout.blocks.size(); i-- > 0;) {
      if (static_cast<size_t>(layout.block_axes[i]) == axis) {
        digits_.push_back({layout.blocks[i], stride});
        block_ *= layout.blocks[i];
      }
      stride *= layout.blocks[i];
    }
  }

  bool empty() const { return digits_.empty(); }

  // Elements to skip to an index.
  int64_t PlaceOf(int64_t index) const {
    int64_t place = index / block_ * outer_stride_;
    for (const Digit& digit : digits_) {
      place += index % digit.size * digit.stride;
      index /= digit.size;
    }
    return place;
  }

 private:
  struct Digit {
    int64_t size, stride;
  };
  std::vector<Digit> digits_;  // the innermost first
  int64_t block_ = 1, outer_stride_;
};

}  // namespace

PhysicalLayout ParseLayout(const Dims& dims, const std::string& dtype, const std::string& tag) {
  PhysicalLayout layout;
  layout.element_bytes = ElementBytes(dtype);
  if (tag == "any") return layout;
  const size_t rank = dims.size();
  if (tag.size() < rank) ThrowTag(tag, rank);
  layout.padded = dims;
  ReadBlocks(tag, &layout);
  Dims order, multiples(rank, 1);
  for (size_t i = 0; i < layout.blocks.size(); ++i) {
    int64_t& multiple = multiples[static_cast<size_t>(layout.block_axes[i])];
    multiple *= layout.blocks[i];
    if (multiple > INT32_MAX) ThrowTag(tag, rank);
  }
  for (size_t i = 0; i < rank; ++i) {
    const auto letter = static_cast<unsigned char>(tag[i]);
    const int axis = std::tolower(letter) - 'a';
    const bool known = std::isalpha(letter) != 0 && axis < static_cast<int>(rank) &&
                       std::find(order.begin(), order.end(), axis) == order.end();
    if (!known) ThrowTag(tag, rank);
    const bool blocked = std::find(layout.block_axes.begin(), layout.block_axes.end(), axis) !=
                         layout.block_axes.end();
    if (blocked != (std::isupper(letter) != 0)) ThrowTag(tag, rank);
    order.push_back(axis);
  }
  int64_t elements = 1;
  bool fits = true;
  for (int64_t size : layout.blocks) fits &= !__builtin_mul_overflow(elements, size, &elements);
  layout.strides.assign(rank, 0);
  for (size_t i = rank; i-- > 0;) {
    const auto axis = static_cast<size_t>(order[i]);
    const int64_t outer =
        dims[axis] / multiples[axis] + (dims[axis] % multiples[axis] != 0 ? 1 : 0);
    fits &= !__builtin_mul_overflow(outer, multiples[axis], &layout.padded[axis]);
    layout.strides[axis] = elements;
    if (!fits || __builtin_mul_overflow(elements, outer, &elements)) {
      ThrowUnsupported("a tensor of more than 2^63 elements");
    }
  }
  if (__builtin_mul_overflow(elements, layout.element_bytes, &layout.bytes)) {
    ThrowUnsupported("a tensor of more than 2^63 bytes");
  }
  return layout;
}

bool IsBlocked(const PhysicalLayout& layout) { return !layout.blocks.empty(); }

bool IsPadded(const PhysicalLayout& layout, const Dims& dims) { return layout.padded != dims; }

Line LineAlong(const PhysicalLayout& layout, size_t axis, int64_t count, int64_t begin,
               int64_t step) {
  if (Digits digits(layout, axis); !digits.empty()) {
    if (count > kMostInBlocks) {
      ThrowUnsupported("an axis of ", count, " in blocks, expected at most ", kMostInBlocks);
    }
    Line line;
    for (int64_t i = 0; i < count; ++i) line.table.push_back(digits.PlaceOf(begin + i * step));
    return line;
  }
  return {begin * layout.strides[axis], step * layout.strides[axis], {}};
}

Line LineAt(const PhysicalLayout& layout, size_t axis, const int64_t* indices, int64_t count) {
  const Digits digits(layout, axis);
  Line line;
  for (int64_t i = 0; i < count; ++i) line.table.push_back(digits.PlaceOf(indices[i]));
  return line;
}

}  // namespace mxplan::host
