// Layouts as numbers; see physical_layout.h.
#include "program/physical_layout.h"

#include <string_view>

#include "base/error.h"

namespace mxplan {
namespace {

struct Type {
  std::string_view name;
  int64_t bytes;
};

constexpr Type kTypes[] = {{"float32", 4}, {"float64", 8}, {"int8", 1},    {"uint8", 1},
                           {"int16", 2},   {"uint16", 2},  {"int32", 4},   {"uint32", 4},
                           {"int64", 8},   {"uint64", 8},  {"float16", 2}, {"bfloat16", 2},
                           {"bool", 1}};

}  // namespace

int64_t ElementBytes(const std::string& dtype) {
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.bytes;
  }
  ThrowUnsupported("element type ", dtype, ", which no program has");
}

Dims OuterDims(const PhysicalLayout& layout) {
  Dims outer = layout.padded;
  for (size_t i = 0; i < layout.blocks.size(); ++i) outer[layout.block_axes[i]] /= layout.blocks[i];
  return outer;
}

bool SamePlacement(const PhysicalLayout& a, const PhysicalLayout& b) {
  if (a.padded.empty() || a.padded != b.padded) return false;
  if (a.blocks != b.blocks || a.block_axes != b.block_axes) return false;
  Dims outer = OuterDims(a);
  for (size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

Dims PhysicalShape(const PhysicalLayout& layout, const std::string& tag) {
  Dims outer = OuterDims(layout);
  Dims shape;
  for (size_t i = 0; i < outer.size(); ++i) shape.push_back(outer[(tag[i] | 0x20) - 'a']);
  shape.insert(shape.end(), layout.blocks.begin(), layout.blocks.end());
  return shape;
}

std::string PlainTag(size_t rank) {
  std::string tag;
  for (size_t i = 0; i < rank; ++i) tag += static_cast<char>('a' + i);
  return tag;
}

}  // namespace mxplan
