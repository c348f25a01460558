// Copies between the CPU and the GPU; see copies.h.
#include "cudnn/copies.h"

#include "cudnn/api.h"
#include "cudnn/device.h"

namespace mxplan {
namespace {

CudaStream Copy(void* to, const void* from, int64_t bytes, int kind) {
  CudaStream stream = CurrentStream(CurrentDevice());
  CheckCuda(Cuda().cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream),
            "cudaMemcpyAsync");
  return stream;
}

}  // namespace

void CopyToGpu(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) Copy(to, from, bytes, kCudaCopyIn);
}

void CopyToCpu(void* to, const void* from, int64_t bytes) {
  if (bytes <= 0) return;
  CudaStream stream = Copy(to, from, bytes, kCudaCopyOut);
  CheckCuda(Cuda().cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

}  // namespace mxplan
