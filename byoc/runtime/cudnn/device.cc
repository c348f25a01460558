// Devices, their memory, handles; see device.h.
#include "cudnn/device.h"

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>

#include "base/digest.h"
#include "base/error.h"

namespace mxplan {
namespace {

constexpr int kOutOfMemory = 2;

class Memory final : public MemorySpace {
 public:
  Kind kind() const override { return Kind::kCuda; }
  const char* title() const override { return "the GPU"; }

  void CheckDevice(int number, const std::string& where) const override {
    const int here = CurrentDevice();
    if (number == here) return;
    ThrowInvalidInput(where, " is on GPU ", number, ", the calling thread works on GPU ", here,
                      "; hand over tensors of that one, or call with the other one set");
  }

  std::shared_ptr<char> Allocate(int64_t bytes) const override {
    const CudaApi& cuda = Cuda();
    void* data = nullptr;
    int status = Taken(cuda.cudaMalloc(&data, static_cast<size_t>(bytes > 0 ? bytes : 1)));
    if (status == kOutOfMemory) {
      ThrowUnsupported("the GPU has no ", bytes, " bytes left; use a smaller batch or another GPU");
    }
    CheckCuda(status, "cudaMalloc");
    return {static_cast<char*>(data), [&cuda](char* freed) { Taken(cuda.cudaFree(freed)); }};
  }

  // Equal bytes are on a device once, as long as somebody uses them: constants of functions for
  // several sizes of a batch, say.  Nobody writes to copies.
  std::shared_ptr<char> Copied(const char* host, int64_t bytes) const override {
    Digester digester(ProcessSeed());
    digester.Add(host, static_cast<size_t>(bytes));
    const Key key{CurrentDevice(), bytes, digester.Take()};
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<char> copy = copies_[key].lock();
    if (copy != nullptr) return copy;
    for (auto one = copies_.begin(); one != copies_.end();) {
      one = one->second.expired() ? copies_.erase(one) : std::next(one);
    }
    copy = Allocate(bytes);
    CheckCuda(Cuda().cudaMemcpy(copy.get(), host, static_cast<size_t>(bytes), kCudaCopyIn),
              "cudaMemcpy");
    // It returns when the bytes are read; a stream that waits for no other could run before they
    // are there.
    CheckCuda(Cuda().cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    copies_[key] = copy;
    return copy;
  }

 private:
  using Key = std::tuple<int, int64_t, Digest>;  // device, bytes
  mutable std::mutex mutex_;
  mutable std::map<Key, std::weak_ptr<char>> copies_;
};

CudaStream DefaultStream(int) { return nullptr; }

std::atomic<CudaStream (*)(int)> stream_source{&DefaultStream};

thread_local CudaStream redirected = nullptr;

}  // namespace

std::string ToText(const DeviceFacts& facts) {
  return Concat("SM ", facts.sm, " with ", facts.multiprocessors, " multiprocessors, driver ",
                facts.driver, ", cuDNN ", facts.cudnn);
}

int CurrentDevice() {
  const CudaApi& cuda = Cuda();
  int count = 0, device = 0;
  int status = Taken(cuda.cudaGetDeviceCount(&count));
  if (status != 0 || count == 0) {
    ThrowUnsupported("no GPU is here (",
                     status != 0 ? cuda.cudaGetErrorString(status) : "the driver knows none",
                     "); run this on a machine with an NVIDIA GPU and driver");
  }
  CheckCuda(cuda.cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

DeviceFacts FactsOf(int device) {
  const CudaApi& cuda = Cuda();
  auto attribute = [&](int what) {
    int value = 0;
    CheckCuda(cuda.cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
    return value;
  };
  DeviceFacts facts;
  facts.cudnn = static_cast<int64_t>(cuda.cudnnGetVersion());
  facts.sm = 10 * attribute(kCudaMajor) + attribute(kCudaMinor);
  facts.multiprocessors = attribute(kCudaMultiprocessors);
  int driver = 0;
  CheckCuda(cuda.cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  facts.driver = driver;
  return facts;
}

BuildHandle::BuildHandle(int device) {
  static std::mutex mutex;
  static auto* handles = new std::map<int, CudnnHandle>();
  lock_ = std::unique_lock<std::mutex>(mutex);
  CudnnHandle& handle = (*handles)[device];
  if (handle == nullptr) CheckCudnn(Cuda().cudnnCreate(&handle), "cudnnCreate");
  handle_ = handle;
}

const MemorySpace& CudaMemory() {
  static const auto* memory = new Memory();  // never destroyed: modules outlive main's statics
  return *memory;
}

CudnnHandle CudaQueue::handle() {
  const CudaApi& cuda = Cuda();
  if (handle_ == nullptr) {
    CheckCudnn(cuda.cudnnCreate(&handle_), "cudnnCreate");
    bound_ = false;
  }
  if (!bound_) {
    CheckCudnn(cuda.cudnnSetStream(handle_, stream_), "cudnnSetStream");
    bound_ = true;
  }
  return handle_;
}

void CudaQueue::Set(int device, CudaStream stream) {
  if (device != device_ && handle_ != nullptr) {
    Taken(Cuda().cudnnDestroy(handle_));  // a handle belongs to the device that it was made on
    handle_ = nullptr;
  }
  if (device != device_ || stream != stream_) bound_ = false;
  device_ = device;
  stream_ = stream;
}

CudaQueue::~CudaQueue() {
  if (handle_ != nullptr) Taken(Cuda().cudnnDestroy(handle_));
}

void SetStreamSource(CudaStream (*source)(int device)) { stream_source = source; }

CudaStream CurrentStream(int device) { return stream_source.load()(device); }

CudaQueue* ThreadQueue() {
  thread_local CudaQueue queue;
  int device = CurrentDevice();
  queue.Set(device, redirected != nullptr ? redirected : CurrentStream(device));
  return &queue;
}

void RedirectStream(CudaStream stream) { redirected = stream; }

bool IsRedirected() { return redirected != nullptr; }

}  // namespace mxplan
