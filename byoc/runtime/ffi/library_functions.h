// Global functions that every library has for TVM and Python.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_FFI_LIBRARY_FUNCTIONS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_FFI_LIBRARY_FUNCTIONS_H_

#include <string>

namespace mxplan {

// Registers tvm_mxplan.<library>.* and the loader of modules of kind mxplan_<library>.  The library
// itself is looked up when a function is called.
void RegisterFunctionsOf(const std::string& library);

// The part of it that makes and loads modules.
void RegisterModulesOf(const std::string& library);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_FFI_LIBRARY_FUNCTIONS_H_
