/* A driver without a device, as the library libcuda.so.1: every call answers that there is none.
 *
 * Engines that cuDNN compiles at planning time want a driver to be there, and ask it for nothing
 * that depends on one: with this stand-in their plans are made on machines without a GPU. */
#include <stddef.h>
#include <string.h>

enum { kNoDevice = 100, kVersion = 13000 };

#define NAMES(F)                                                                                  \
  F(cuCtxGetCurrent) F(cuCtxGetLimit) F(cuCtxPopCurrent) F(cuCtxPushCurrent) F(cuDeviceGet)       \
  F(cuKernelGetAttribute) F(cuKernelSetAttribute) F(cuLaunchCooperativeKernel) F(cuLaunchKernel)  \
  F(cuLaunchKernelEx) F(cuLibraryGetKernel) F(cuLibraryLoadData) F(cuLibraryLoadFromFile)         \
  F(cuLibraryUnload) F(cuLinkAddData) F(cuLinkComplete) F(cuLinkCreate) F(cuLinkDestroy)          \
  F(cuOccupancyMaxPotentialClusterSize) F(cuStreamGetCtx)

#define STAND_IN(name) \
  int name(void) { return kNoDevice; }
NAMES(STAND_IN)

int cuInit(unsigned flags) {
  (void)flags;
  return kNoDevice;
}
int cuDriverGetVersion(int* version) {
  *version = kVersion;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 0;
  return kNoDevice;
}
int cuGetErrorString(int error, const char** text) {
  (void)error;
  *text = "no CUDA-capable device is detected";
  return 0;
}
int cuGetErrorName(int error, const char** text) {
  (void)error;
  *text = "CUDA_ERROR_NO_DEVICE";
  return 0;
}

static int Nothing(void) { return kNoDevice; }

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags,
                        int* status) {
  static const struct {
    const char* name;
    void* function;
  } known[] = {{"cuInit", (void*)cuInit},
               {"cuDriverGetVersion", (void*)cuDriverGetVersion},
               {"cuDeviceGetCount", (void*)cuDeviceGetCount},
               {"cuGetErrorString", (void*)cuGetErrorString},
               {"cuGetErrorName", (void*)cuGetErrorName},
               {"cuGetProcAddress", (void*)cuGetProcAddress_v2}};
  size_t i;
  (void)version;
  (void)flags;
  *function = (void*)Nothing;
  for (i = 0; i < sizeof(known) / sizeof(*known); ++i) {
    if (strcmp(name, known[i].name) == 0) *function = known[i].function;
  }
  if (status != NULL) *status = 0;
  return 0;
}
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
