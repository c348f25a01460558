// A stage that fills a float32 or bfloat16 tensor with one number; the tails of blocked axes become
// zero.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_FILL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_FILL_H_

#include <memory>

#include "onednn/builder/memory_stage.h"

namespace mxplan {

std::unique_ptr<const Stage> MakeFill(const MemoryArgument& dst, float value);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_FILL_H_
