// Constants that are data of a loaded library, found by name and read where the system has mapped
// them.
//
// TVM hands a module its saved bytes as a copy of a copy.  Constants therefore go beside them: into
// an object file that is linked into the library, under a symbol that names their content.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_LINKED_WEIGHTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_LINKED_WEIGHTS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/constant.h"

namespace mxplan {

// The symbol for constants: equal ones have equal symbols, and stand in a library once.
std::string WeightsSymbol(const std::vector<ConstantData>& constants);

// The place of each constant behind the symbol, and the bytes of all.
struct WeightsPlan {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};
WeightsPlan PlanWeights(const std::vector<ConstantData>& constants);

// Writes an object file (ELF, x86-64) that defines `symbol`.  Throws Error where it cannot.
void WriteWeightsObject(const std::string& path, const std::string& symbol,
                        const std::vector<ConstantData>& constants);

// The bytes behind a symbol of some loaded library, which stays loaded with the pointer.
// Throws InvalidInput if there is none, or one of another size.  Null for no bytes.
std::shared_ptr<const char> FindWeights(const std::string& symbol, int64_t bytes);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_LINKED_WEIGHTS_H_
