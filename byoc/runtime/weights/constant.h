// The bytes of one constant of a region, wherever they are: a tensor of the caller's, a loaded
// container, or the pages of a file that the process has mapped.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_CONSTANT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_CONSTANT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mxplan {

// The form of `data` that is not in the plain order: the plain bytes, seen as `dims` in the layout
// `plain`, were brought into the layout `packed`.  Nothing is lost; see packed_constants.h.
struct StoredForm {
  std::vector<int64_t> dims;
  std::string plain, packed;  // tags
};

struct ConstantData {
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t bytes = 0;  // in plain order
  const char* data = nullptr;
  int64_t stored_bytes = 0;  // behind `data`
  StoredForm form;
  bool IsPlain() const { return form.packed.empty(); }
  // Not empty: none of the program's constants but what some primitive makes of one, kept beside
  // it; the name of what it is good for (packed_constants.h).
  std::string serves;
  std::shared_ptr<const void> owner;  // keeps `data` alive
  bool mapped = false;                // pages of a file, which come back when they are read again
};

// Bytes that mapped constants are read in at a time, so that few of their pages are resident.
constexpr int64_t kSliceBytes = int64_t{8} << 20;

// Gives the whole pages in [data, data + bytes) back to the system.  Only for mapped constants.
void DropPages(const char* data, int64_t bytes);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_CONSTANT_H_
