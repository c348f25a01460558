// Layouts as plain numbers: places of a tensor's elements, whatever library works on them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_PHYSICAL_LAYOUT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_PHYSICAL_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mxplan {

using Dims = std::vector<int64_t>;

struct PhysicalLayout {
  int64_t bytes = -1;         // padding included; -1: a layout that is still to be chosen
  int64_t element_bytes = 1;  // of one element
  // Axes in blocks of `blocks[i]` along `block_axes[i]`, the innermost last.  Empty where elements
  // stand in no order that strides and blocks can tell.
  Dims padded;   // extents, rounded up to whole blocks
  Dims strides;  // in elements, from one block of an axis to the next
  Dims blocks, block_axes;
};

// Bytes of an element of a type, by the name that programs have for it; Unsupported for others.
int64_t ElementBytes(const std::string& dtype);

// Number of blocks along each axis.
Dims OuterDims(const PhysicalLayout& layout);

// True if two tensors of one shape and type have every element at the same place.  Axes of one
// block are free in their strides.
bool SamePlacement(const PhysicalLayout& a, const PhysicalLayout& b);

// The shape a tensor has if its stored order is read as dimensions: [1, 64, 56, 56] in aBcd16b is
// [1, 4, 56, 56, 16].  `tag` is the layout's name.
Dims PhysicalShape(const PhysicalLayout& layout, const std::string& tag);

// The plain layout of a rank: "abcd" for 4.
std::string PlainTag(size_t rank);

// Says how tensors are stored.
class LayoutSource {
 public:
  LayoutSource() = default;
  virtual ~LayoutSource() = default;
  LayoutSource(const LayoutSource&) = delete;
  LayoutSource& operator=(const LayoutSource&) = delete;

  // Of a tensor of `dims` in the layout `tag`; "any" is still to be chosen.  Throws Error where
  // there is no such type or layout.
  virtual PhysicalLayout LayoutOf(const Dims& dims, const std::string& dtype,
                                  const std::string& tag) const = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_PHYSICAL_LAYOUT_H_
