// The constants of a region as a module of their own.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_FFI_WEIGHTS_MODULE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_FFI_WEIGHTS_MODULE_H_

#include <tvm/ffi/extra/module.h>

#include <memory>

#include "weights/exported_weights.h"

namespace mxplan {

// For export alone: TVM links the object file that it writes into the library.
tvm::ffi::Module MakeWeightsModule(std::shared_ptr<ExportedWeights> weights);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_FFI_WEIGHTS_MODULE_H_
