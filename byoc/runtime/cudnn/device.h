// The GPU that the calling thread works on: what it is, its memory, the thread's stream and handle.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_DEVICE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_DEVICE_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "cudnn/api.h"
#include "library/stage.h"
#include "memory/space.h"

namespace mxplan {

// The properties of a device and its libraries that execution plans depend on.
struct DeviceFacts {
  int64_t cudnn = 0;            // 91900
  int64_t sm = 0;               // 90
  int64_t multiprocessors = 0;  // 132
  int64_t driver = 0;           // 13000

  bool operator==(const DeviceFacts& other) const {
    return cudnn == other.cudnn && sm == other.sm && multiprocessors == other.multiprocessors &&
           driver == other.driver;
  }
};

// "SM 90 with 132 multiprocessors, driver 13000, cuDNN 91900"
std::string ToText(const DeviceFacts& facts);

// Number of the device that the calling thread works on.  Throws Unsupported where there is none.
int CurrentDevice();
DeviceFacts FactsOf(int device);

// The handle that plans of a device are built with, for the calling thread alone while this lives:
// cuDNN's handles are not for two threads at once.  The handle itself outlives all threads.
class BuildHandle {
 public:
  explicit BuildHandle(int device);
  CudnnHandle get() const { return handle_; }

 private:
  std::unique_lock<std::mutex> lock_;
  CudnnHandle handle_ = nullptr;
};

// The memory of GPUs, on the device of the calling thread.
const MemorySpace& CudaMemory();

// A stream of somebody else's, in which everything stays in order.
class CudaQueue final : public Stream {
 public:
  // The calling thread's cuDNN handle, which works in this stream.
  CudnnHandle handle();
  // Returns at once: who reads results waits for the stream, as with TVM's own kernels.
  void Wait() override {}
  void Set(int device, CudaStream stream);
  CudaStream stream() const { return stream_; }
  int device() const { return device_; }
  ~CudaQueue() override;

 private:
  CudnnHandle handle_ = nullptr;
  int device_ = -1;
  CudaStream stream_ = nullptr;
  bool bound_ = false;  // the handle works in the stream
};

// Sets the source of the stream of a thread's work; the default stream is used without one.
void SetStreamSource(CudaStream (*source)(int device));
CudaStream CurrentStream(int device);

// The queue of the calling thread, in its current stream or where its work is redirected to.
CudaQueue* ThreadQueue();
// Sends the calling thread's work to another stream; null ends that.
void RedirectStream(CudaStream stream);
bool IsRedirected();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_DEVICE_H_
