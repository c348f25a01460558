// Layouts by their tags, for elements of any type and blocks of any size.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_LAYOUT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_LAYOUT_H_

#include <string>

#include "program/physical_layout.h"

namespace mxplan::host {

// See LayoutSource::LayoutOf.
PhysicalLayout ParseLayout(const Dims& dims, const std::string& dtype, const std::string& tag);

bool IsBlocked(const PhysicalLayout& layout);
// Whether some stored elements are none of the tensor's.
bool IsPadded(const PhysicalLayout& layout, const Dims& dims);

// Places of elements along one axis, as elements to skip; the place of an element is the sum over
// its axes.
struct Line {
  int64_t first = 0, stride = 0;
  Dims table;  // of each one, where they are not as far from each other

  int64_t At(int64_t i) const {
    return table.empty() ? first + i * stride : table[static_cast<size_t>(i)];
  }
};

// Along `axis`: `count` elements from index `begin` on, every `step`-th.
Line LineAlong(const PhysicalLayout& layout, size_t axis, int64_t count, int64_t begin = 0,
               int64_t step = 1);

// Along `axis`: the elements at `count` indices.
Line LineAt(const PhysicalLayout& layout, size_t axis, const int64_t* indices, int64_t count);

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_LAYOUT_H_
