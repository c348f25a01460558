// The state of the process that oneDNN's primitives are made for: threads, instruction set, mode.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROCESS_STATE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROCESS_STATE_H_

#include "library/library.h"

namespace mxplan {

// Of the calling thread, now.  Settings: the instruction set, the mode of float32 arithmetic.
ProcessState CurrentState();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROCESS_STATE_H_
