// Copies between the CPU and the GPU; see copies.h.
#include "cudnn/copies.h"

#include "cudnn/api.h"
#include "cudnn/device.h"
#include "cudnn/staging.h"

namespace mxplan {

void CopyToGpu(void* to, const void* from, int64_t bytes) {
  if (bytes <= 0) return;
  thread_local Staging staging;
  int device = CurrentDevice();
  staging.Send(device, CurrentStream(device), to, from, bytes);
}

void CopyToCpu(void* to, const void* from, int64_t bytes) {
  if (bytes <= 0) return;
  CudaStream stream = CurrentStream(CurrentDevice());
  const auto size = static_cast<size_t>(bytes);
  CheckCuda(Cuda().cudaMemcpyAsync(to, from, size, kCudaCopyOut, stream), "cudaMemcpyAsync");
  CheckCuda(Cuda().cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void CopyOnGpu(void* to, const void* from, int64_t bytes) {
  if (bytes <= 0) return;
  CudaStream stream = CurrentStream(CurrentDevice());
  const auto size = static_cast<size_t>(bytes);
  CheckCuda(Cuda().cudaMemcpyAsync(to, from, size, kCudaCopyWithin, stream), "cudaMemcpyAsync");
}

void ClearOnGpu(void* to, int64_t bytes) {
  if (bytes <= 0) return;
  CudaStream stream = CurrentStream(CurrentDevice());
  CheckCuda(Cuda().cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), stream), "cudaMemsetAsync");
}

}  // namespace mxplan
