// A program with numbers for its symbols: shapes, layouts and where every value's bytes are found
// relative to their root.  A query, whose values may be in layout "any", decides layouts as its
// steps are built.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_RESOLVED_H_
#define TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_RESOLVED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "program/physical_layout.h"
#include "program/program.h"

namespace mxplan {

struct ResolvedValue {
  Dims dims;
  std::string error;      // why this type or layout cannot be had
  std::string tag;        // the layout's name; "any" until a step has chosen one
  PhysicalLayout layout;  // nothing if `error` is not empty
  int root = -1;
  int64_t offset = 0;  // bytes from the root's first byte

  bool IsAny() const { return error.empty() && layout.bytes < 0; }
  int64_t Bytes() const { return layout.bytes; }
};

struct Resolved {
  const Program* program = nullptr;
  std::vector<ResolvedValue> values;
};

// Never fails on a type or layout, which become the value's `error`; throws InvalidInput on shapes.
Resolved Resolve(const Program& program, const std::vector<int64_t>& symbols,
                 const LayoutSource& layouts);

// Throws unless every value can be placed: no error, no "any", and each alias inside its root.
void CheckPlaceable(const Resolved& resolved);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_PROGRAM_RESOLVED_H_
