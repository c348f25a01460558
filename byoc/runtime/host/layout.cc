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
  // The innermost block counts single elements of its axis, each further one whole blocks of them.
  struct Digit {
    int64_t size, stride;
  };
  std::vector<Digit> digits;  // the innermost first
  int64_t stride = 1, block = 1;
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    if (static_cast<size_t>(layout.block_axes[i]) == axis) {
      digits.push_back({layout.blocks[i], stride});
      block *= layout.blocks[i];
    }
    stride *= layout.blocks[i];
  }
  if (digits.empty()) return {begin * layout.strides[axis], step * layout.strides[axis], {}};
  if (count > kMostInBlocks) {
    ThrowUnsupported("an axis of ", count, " in blocks, expected at most ", kMostInBlocks);
  }
  Line line;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = begin + i * step;
    int64_t rest = index, place = index / block * layout.strides[axis];
    for (const Digit& digit : digits) {
      place += rest % digit.size * digit.stride;
      rest /= digit.size;
    }
    line.table.push_back(place);
  }
  return line;
}

}  // namespace mxplan::host
