// Pinned buffers and the copies out of them; see staging.h.
#include "cudnn/staging.h"

#include <cstring>

namespace mxplan {

Staging::~Staging() { Drop(); }

void Staging::Send(int device, CudaStream stream, void* to, const void* from, int64_t bytes) {
  const CudaApi& cuda = Cuda();
  if (device != device_) Drop();
  device_ = device;
  const auto size = static_cast<size_t>(bytes);
  Buffer* buffer = Free(bytes);
  if (buffer != nullptr) {
    std::memcpy(buffer->data, from, size);
    from = buffer->data;
  }
  CheckCuda(cuda.cudaMemcpyAsync(to, from, size, kCudaCopyIn, stream), "cudaMemcpyAsync");
  if (buffer == nullptr) return;
  int status = cuda.cudaEventRecord(buffer->sent, stream);
  if (status == 0) return;
  Taken(cuda.cudaStreamSynchronize(stream));  // no event tells when the buffer is free again
  CheckCuda(status, "cudaEventRecord");
}

// The smallest of those that are large enough, the first of equal ones: calls that repeat find the
// same.  One that is still being read is waited for only where no more may be pinned.
Staging::Buffer* Staging::Free(int64_t bytes) {
  Buffer *idle = nullptr, *busy = nullptr;
  for (Buffer& one : buffers_) {
    if (one.bytes < bytes) continue;
    int status = Taken(Cuda().cudaEventQuery(one.sent));
    if (status != kCudaNotReady) CheckCuda(status, "cudaEventQuery");
    Buffer*& best = status == 0 ? idle : busy;
    if (best == nullptr || one.bytes < best->bytes) best = &one;
  }
  if (idle != nullptr) return idle;
  if (pinned_ + bytes <= kMost) return Pinned(bytes);
  if (busy != nullptr) CheckCuda(Cuda().cudaEventSynchronize(busy->sent), "cudaEventSynchronize");
  return busy;
}

// Null where the system has no more memory to pin: the tensor is then copied from where it stands.
Staging::Buffer* Staging::Pinned(int64_t bytes) {
  const CudaApi& cuda = Cuda();
  Buffer made;
  made.bytes = bytes;
  if (Taken(cuda.cudaHostAlloc(&made.data, static_cast<size_t>(bytes), 0)) != 0) return nullptr;
  int status = cuda.cudaEventCreateWithFlags(&made.sent, kCudaEventWithoutTime);
  if (status != 0) {
    Taken(cuda.cudaFreeHost(made.data));
    CheckCuda(status, "cudaEventCreateWithFlags");
  }
  pinned_ += bytes;
  buffers_.push_back(made);
  return &buffers_.back();
}

void Staging::Drop() {
  for (const Buffer& one : buffers_) {
    Taken(Cuda().cudaEventSynchronize(one.sent));  // no copy may read what is given back
    Taken(Cuda().cudaEventDestroy(one.sent));
    Taken(Cuda().cudaFreeHost(one.data));
  }
  buffers_.clear();
  pinned_ = 0;
}

}  // namespace mxplan
