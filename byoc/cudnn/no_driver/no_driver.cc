// A driver without a device, as the library libcuda.so.1: every call answers that there is none.
//
// Engines that cuDNN compiles while their plans are made want a driver to be there, and ask it for
// nothing that depends on a device.  The planner's process (native/serve.py) loads this one where
// the system has no driver, and no other process does: what runs on a GPU must find the real one.
#include <cstddef>
#include <cstring>

namespace {

constexpr int kNoDevice = 100;
// The driver that cuDNN 9.19 for CUDA 13 is told of; a device's own is in the file of its
// properties, which plans are made for.
constexpr int kVersion = 13000;

int Nothing() { return kNoDevice; }

}  // namespace

#define MXPLAN_DRIVER extern "C" __attribute__((visibility("default"))) int

#define MXPLAN_NO_DEVICE(name) \
  MXPLAN_DRIVER name() { return kNoDevice; }
MXPLAN_NO_DEVICE(cuCtxGetCurrent)
MXPLAN_NO_DEVICE(cuCtxGetLimit)
MXPLAN_NO_DEVICE(cuCtxPopCurrent)
MXPLAN_NO_DEVICE(cuCtxPushCurrent)
MXPLAN_NO_DEVICE(cuDeviceGet)
MXPLAN_NO_DEVICE(cuKernelGetAttribute)
MXPLAN_NO_DEVICE(cuKernelSetAttribute)
MXPLAN_NO_DEVICE(cuLaunchCooperativeKernel)
MXPLAN_NO_DEVICE(cuLaunchKernel)
MXPLAN_NO_DEVICE(cuLaunchKernelEx)
MXPLAN_NO_DEVICE(cuLibraryGetKernel)
MXPLAN_NO_DEVICE(cuLibraryLoadData)
MXPLAN_NO_DEVICE(cuLibraryLoadFromFile)
MXPLAN_NO_DEVICE(cuLibraryUnload)
MXPLAN_NO_DEVICE(cuLinkAddData)
MXPLAN_NO_DEVICE(cuLinkComplete)
MXPLAN_NO_DEVICE(cuLinkCreate)
MXPLAN_NO_DEVICE(cuLinkDestroy)
MXPLAN_NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
MXPLAN_NO_DEVICE(cuStreamGetCtx)

MXPLAN_DRIVER cuInit(unsigned) { return kNoDevice; }
MXPLAN_DRIVER cuDriverGetVersion(int* version) {
  *version = kVersion;
  return 0;
}
MXPLAN_DRIVER cuDeviceGetCount(int* count) {
  *count = 0;
  return kNoDevice;
}
MXPLAN_DRIVER cuGetErrorString(int, const char** text) {
  *text = "no CUDA-capable device is detected";
  return 0;
}
MXPLAN_DRIVER cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_NO_DEVICE";
  return 0;
}

// Every function is there; those that are not below answer that there is no device.
MXPLAN_DRIVER cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long,
                                  int* status) {
  static const struct {
    const char* name;
    void* function;
  } known[] = {{"cuInit", reinterpret_cast<void*>(cuInit)},
               {"cuDriverGetVersion", reinterpret_cast<void*>(cuDriverGetVersion)},
               {"cuDeviceGetCount", reinterpret_cast<void*>(cuDeviceGetCount)},
               {"cuGetErrorString", reinterpret_cast<void*>(cuGetErrorString)},
               {"cuGetErrorName", reinterpret_cast<void*>(cuGetErrorName)},
               {"cuGetProcAddress", reinterpret_cast<void*>(cuGetProcAddress_v2)}};
  *function = reinterpret_cast<void*>(Nothing);
  for (const auto& one : known) {
    if (std::strcmp(name, one.name) == 0) *function = one.function;
  }
  if (status != nullptr) *status = 0;
  return 0;
}
MXPLAN_DRIVER cuGetProcAddress(const char* name, void** function, int version,
                               unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
