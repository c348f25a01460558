// Finding the two libraries; see api.h.
#include "cudnn/api.h"

#include <dlfcn.h>

#include <mutex>
#include <vector>

#include "base/error.h"

namespace mxplan {
namespace {

struct Paths {
  std::mutex mutex;
  std::string cudart, cudnn;
};

Paths& LibraryPaths() {
  static auto* paths = new Paths();
  return *paths;
}

void* Open(const std::vector<std::string>& names, const char* what, const char* remedy) {
  std::string failures;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    failures += Concat(failures.empty() ? "" : "; ", dlerror());
  }
  ThrowUnsupported("cannot load ", what, " (", failures, "); ", remedy);
}

template <typename F>
void Find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr) ThrowUnsupported("cuDNN or the CUDA runtime lacks ", name);
}

CudaApi Load() {
  constexpr const char* kRemedy = "install tvm_mxplan[cuda] on a machine with an NVIDIA driver";
  std::string cudart, cudnn;
  {
    Paths& paths = LibraryPaths();
    std::lock_guard<std::mutex> lock(paths.mutex);
    cudart = paths.cudart;
    cudnn = paths.cudnn;
  }
  CudaApi api;
  void* library = Open({cudart, "libcudart.so.13", "libcudart.so.12"}, "the CUDA runtime", kRemedy);
#define MXPLAN_FIND(name, result, arguments) Find(library, #name, &api.name);
  MXPLAN_CUDA_FUNCTIONS(MXPLAN_FIND)
  library = Open({cudnn, "libcudnn.so.9"}, "cuDNN", kRemedy);
  MXPLAN_CUDNN_FUNCTIONS(MXPLAN_FIND)
#undef MXPLAN_FIND
  return api;
}

}  // namespace

void SetCudaLibraries(const std::string& cudart, const std::string& cudnn) {
  Paths& paths = LibraryPaths();
  std::lock_guard<std::mutex> lock(paths.mutex);
  paths.cudart = cudart;
  paths.cudnn = cudnn;
}

const CudaApi& Cuda() {
  // Never destroyed; tried again where it failed, since libraries may be installed meanwhile.
  static std::mutex mutex;
  static const CudaApi* loaded = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded == nullptr) loaded = new CudaApi(Load());
  return *loaded;
}

int Taken(int status) {
  if (status != 0) Cuda().cudaGetLastError();
  return status;
}

void CheckCuda(int status, const char* function) {
  if (Taken(status) != 0) ThrowUnsupported(function, ": ", Cuda().cudaGetErrorString(status));
}

void CheckCudnn(int status, const char* function) {
  if (Taken(status) != 0) ThrowUnsupported(function, ": ", Cuda().cudnnGetErrorString(status));
}

}  // namespace mxplan
