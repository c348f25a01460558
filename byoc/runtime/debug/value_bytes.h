// The places of values' bytes while a context runs, for those who look on.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_DEBUG_VALUE_BYTES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_DEBUG_VALUE_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace mxplan {

class Specialization;

struct Span {
  char* begin;
  char* end;
  bool Overlaps(const Span& other) const {
    return std::max(begin, other.begin) < std::min(end, other.end);
  }
};

// Bytes of a value, padding included.  `io` holds the addresses of inputs, then outputs.
Span BytesOf(const Specialization& owner, char* arena, const std::vector<void*>& io, int value);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_DEBUG_VALUE_BYTES_H_
