// Copies between the CPU's memory and the GPU of the calling thread, and within the latter, in the
// thread's stream.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_COPIES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_COPIES_H_

#include <cstdint>

namespace mxplan {

// The CPU's bytes have been read when it returns, by way of pinned memory of the thread's
// (staging.h).  The GPU's are there for whatever follows in the stream.
void CopyToGpu(void* to, const void* from, int64_t bytes);

// All that stands before it in the stream has ended, and the bytes are there, when it returns.
void CopyToCpu(void* to, const void* from, int64_t bytes);

// Within the GPU's memory; there for whatever follows in the stream.
void CopyOnGpu(void* to, const void* from, int64_t bytes);

// Zeros, likewise.
void ClearOnGpu(void* to, int64_t bytes);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_COPIES_H_
