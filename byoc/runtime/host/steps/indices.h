// Places that operands name by indices, which count from either end.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_INDICES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_INDICES_H_

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "program/physical_layout.h"

namespace mxplan::host {

// Indices of int64 or int32, at the address of an operand.
struct Indices {
  const char* data;
  bool wide;

  int64_t At(int64_t i) const {
    return wide ? reinterpret_cast<const int64_t*>(data)[i]
                : reinterpret_cast<const int32_t*>(data)[i];
  }
};

// The place of an index along an axis; throws InvalidInput if it is out of bounds.
inline int64_t PlaceOf(int64_t index, int64_t extent, int64_t axis) {
  if (index < -extent || index >= extent) {
    ThrowInvalidInput("an index is out of bounds for axis ", axis,
                      " of the data, expected one from ", -extent, " to ", extent - 1, ", got ",
                      index);
  }
  return index < 0 ? index + extent : index;
}

// The elements of axes [begin, end).
inline int64_t ElementsOf(const Dims& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) {
    if (__builtin_mul_overflow(product, dims[i], &product) || product > INT64_MAX / 64) {
      ThrowUnsupported("a tensor of more than 2^57 elements");
    }
  }
  return product;
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_INDICES_H_
