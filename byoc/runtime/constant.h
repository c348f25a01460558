// The bytes of one constant of a region, wherever they are: a tensor of the caller's, a loaded
// container, or the pages of a library that the process has mapped.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CONSTANT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CONSTANT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mxplan {

struct ConstantData {
  std::string dtype;
  std::vector<int64_t> shape;
  const char* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<const void> owner;  // keeps `data` alive
  bool mapped = false;                // pages of a file, which come back when they are read again
};

// Gives the whole pages in [data, data + bytes) back to the system.  Only for mapped constants.
void DropPages(const char* data, int64_t bytes);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CONSTANT_H_
