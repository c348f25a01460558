// Layouts by their tags, for elements of any type and blocks of any size.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_LAYOUT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_LAYOUT_H_

#include <string>

#include "program/physical_layout.h"

namespace mxplan::host {

// Bytes of an element.  Throws Unsupported for a type that no kernel here knows.
int64_t ElementBytes(const std::string& dtype);

// See LayoutSource::LayoutOf.
PhysicalLayout ParseLayout(const Dims& dims, const std::string& dtype, const std::string& tag);

bool IsBlocked(const PhysicalLayout& layout);
// Whether some stored elements are none of the tensor's.
bool IsPadded(const PhysicalLayout& layout, const Dims& dims);

// Where the elements along `axis` stand: for each index the elements to skip.  The place of an
// element is the sum over its axes.
Dims PlacesAlong(const PhysicalLayout& layout, size_t axis, int64_t extent);

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_LAYOUT_H_
