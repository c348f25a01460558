// A program with numbers for its symbols: shapes, descriptors and where every value's bytes are
// found relative to their root.  Building the primitives of a query ("any" layouts) settles
// descriptors.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_RESOLVED_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_RESOLVED_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "onednn/layout.h"
#include "program/program.h"

namespace mxplan {

struct ResolvedValue {
  Dims dims;
  dnnl::memory::desc desc;  // empty if `error` is not
  std::string error;        // why this type or layout cannot be described
  int root = -1;
  int64_t offset = 0;  // bytes from the root's first byte

  bool IsAny() const { return desc && desc.get_format_kind() == dnnl::memory::format_kind::any; }
  int64_t Bytes() const { return desc && !IsAny() ? static_cast<int64_t>(desc.get_size()) : -1; }
};

struct Resolved {
  const Program* program = nullptr;
  std::vector<ResolvedValue> values;
};

// Never fails on a type or layout, which become the value's `error`; throws InvalidInput on shapes.
Resolved Resolve(const Program& program, const std::vector<int64_t>& symbols);

// Throws unless every value can be placed: no error, no "any", and each alias inside its root.
void CheckPlaceable(const Resolved& resolved);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_RESOLVED_H_
