// Pinned memory through which the CPU's bytes go to the GPU, so that a copy returns before it ends.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGING_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGING_H_

#include <cstdint>
#include <vector>

#include "cudnn/api.h"

namespace mxplan {

// The buffers of one thread on one device.  A buffer waits for the copy out of it before it is
// written again; once a thread's calls repeat, nothing is pinned any more.
class Staging {
 public:
  // The most bytes that a thread pins; tensors that do not fit are copied from where they stand.
  static constexpr int64_t kMost = int64_t{256} << 20;

  Staging() = default;
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The bytes are read when it returns; the copy itself is work of the stream.
  void Send(int device, CudaStream stream, void* to, const void* from, int64_t bytes);

 private:
  struct Buffer {
    void* data = nullptr;
    int64_t bytes = 0;
    CudaEvent sent = nullptr;  // the last copy out of it
  };

  // A buffer of so many bytes or more that nothing is copied out of; null where none can be had.
  Buffer* Free(int64_t bytes);
  Buffer* Pinned(int64_t bytes);
  void Drop();

  int device_ = -1;
  int64_t pinned_ = 0;  // bytes of all buffers
  std::vector<Buffer> buffers_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_STAGING_H_
