// The functions of the CUDA runtime and of cuDNN that regions call, found when the first one is
// needed.
//
// Neither library's headers are used: what is called has not changed since cuDNN 9.0 and CUDA 12,
// and is declared here.  A machine without them builds, loads and exports regions, and is told so
// when it runs one.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_API_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_API_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace mxplan {

// Handles and descriptors, as the libraries have them.
using CudnnHandle = void*;
using CudnnDescriptor = void*;
using CudaStream = void*;
using CudaEvent = void*;
using CudaGraph = void*;
using CudaGraphExec = void*;

// Name, result, arguments.  The CUDA runtime's.
#define MXPLAN_CUDA_FUNCTIONS(F)                                                                   \
  F(cudaGetDeviceCount, int, (int* count))                                                         \
  F(cudaGetDevice, int, (int* device))                                                             \
  F(cudaDeviceGetAttribute, int, (int* value, int what, int device))                               \
  F(cudaDriverGetVersion, int, (int* version))                                                     \
  F(cudaMalloc, int, (void** data, size_t bytes))                                                  \
  F(cudaFree, int, (void* data))                                                                   \
  F(cudaMemcpy, int, (void* to, const void* from, size_t bytes, int kind))                         \
  F(cudaMemcpyAsync, int, (void* to, const void* from, size_t bytes, int kind, CudaStream stream)) \
  F(cudaMemsetAsync, int, (void* to, int byte, size_t bytes, CudaStream stream))                   \
  F(cudaHostAlloc, int, (void** data, size_t bytes, unsigned flags))                               \
  F(cudaFreeHost, int, (void* data))                                                               \
  F(cudaEventCreateWithFlags, int, (CudaEvent * made, unsigned flags))                             \
  F(cudaEventDestroy, int, (CudaEvent event))                                                      \
  F(cudaEventRecord, int, (CudaEvent event, CudaStream stream))                                    \
  F(cudaEventQuery, int, (CudaEvent event))                                                        \
  F(cudaEventSynchronize, int, (CudaEvent event))                                                  \
  F(cudaEventElapsedTime, int, (float* milliseconds, CudaEvent from, CudaEvent to))                \
  F(cudaStreamCreateWithFlags, int, (CudaStream * made, unsigned flags))                           \
  F(cudaStreamDestroy, int, (CudaStream stream))                                                   \
  F(cudaStreamBeginCapture, int, (CudaStream stream, int mode))                                    \
  F(cudaStreamEndCapture, int, (CudaStream stream, CudaGraph * made))                              \
  F(cudaGraphInstantiateWithFlags, int,                                                            \
    (CudaGraphExec * made, CudaGraph graph, unsigned long long flags))                             \
  F(cudaGraphLaunch, int, (CudaGraphExec graph, CudaStream stream))                                \
  F(cudaGraphDestroy, int, (CudaGraph graph))                                                      \
  F(cudaGraphExecDestroy, int, (CudaGraphExec graph))                                              \
  F(cudaStreamSynchronize, int, (CudaStream stream))                                               \
  F(cudaGetLastError, int, ())                                                                     \
  F(cudaGetErrorString, const char*, (int status))

// cuDNN's.
#define MXPLAN_CUDNN_FUNCTIONS(F)                                                               \
  F(cudnnGetVersion, size_t, ())                                                                \
  F(cudnnGetErrorString, const char*, (int status))                                             \
  F(cudnnCreate, int, (CudnnHandle * handle))                                                   \
  F(cudnnDestroy, int, (CudnnHandle handle))                                                    \
  F(cudnnSetStream, int, (CudnnHandle handle, CudaStream stream))                               \
  F(cudnnBackendCreateDescriptor, int, (int kind, CudnnDescriptor* made))                       \
  F(cudnnBackendDestroyDescriptor, int, (CudnnDescriptor descriptor))                           \
  F(cudnnBackendSetAttribute, int,                                                              \
    (CudnnDescriptor descriptor, int name, int type, int64_t count, const void* values))        \
  F(cudnnBackendFinalize, int, (CudnnDescriptor descriptor))                                    \
  F(cudnnBackendExecute, int, (CudnnHandle handle, CudnnDescriptor plan, CudnnDescriptor pack)) \
  F(cudnnCreateTensorDescriptor, int, (CudnnDescriptor * made))                                 \
  F(cudnnDestroyTensorDescriptor, int, (CudnnDescriptor descriptor))                            \
  F(cudnnSetTensorNdDescriptor, int,                                                            \
    (CudnnDescriptor descriptor, int type, int rank, const int* extents, const int* strides))   \
  F(cudnnTransformTensor, int,                                                                  \
    (CudnnHandle handle, const void* alpha, CudnnDescriptor src, const void* from,              \
     const void* beta, CudnnDescriptor dst, void* to))                                          \
  F(cudnnSoftmaxForward, int,                                                                   \
    (CudnnHandle handle, int algorithm, int mode, const void* alpha, CudnnDescriptor src,       \
     const void* from, const void* beta, CudnnDescriptor dst, void* to))                        \
  F(cudnnCreatePoolingDescriptor, int, (CudnnDescriptor * made))                                \
  F(cudnnDestroyPoolingDescriptor, int, (CudnnDescriptor descriptor))                           \
  F(cudnnSetPoolingNdDescriptor, int,                                                           \
    (CudnnDescriptor descriptor, int mode, int nan, int axes, const int* kernel,                \
     const int* padding, const int* strides))                                                   \
  F(cudnnPoolingForward, int,                                                                   \
    (CudnnHandle handle, CudnnDescriptor windows, const void* alpha, CudnnDescriptor src,       \
     const void* from, const void* beta, CudnnDescriptor dst, void* to))

// Numbers of the two interfaces; where their headers are, byoc/cudnn/native holds them to these.
constexpr int kCudaCopyIn = 1, kCudaCopyOut = 2, kCudaCopyWithin = 3;
constexpr int kCudaEventWithTime = 0, kCudaEventWithoutTime = 2, kCudaNotReady = 600;
constexpr int kCudaStreamApart = 1, kCudaCaptureOfThread = 1;
constexpr int kCudaMultiprocessors = 16, kCudaMajor = 75, kCudaMinor = 76;
constexpr int kCudnnTypeHandle = 0, kCudnnTypeInt64 = 3, kCudnnTypePointer = 6, kCudnnTypeChar = 24;
constexpr int kCudnnPlan = 5, kCudnnVariantPack = 16;
constexpr int kCudnnPlanHandle = 400, kCudnnPlanText = 405;
constexpr int kCudnnPackIds = 1000, kCudnnPackPointers = 1001, kCudnnPackWorkspace = 1003;
constexpr int kCudnnFloat = 0, kCudnnHalf = 2, kCudnnBfloat16 = 9;
constexpr int kCudnnSoftmaxAccurate = 1, kCudnnSoftmaxLog = 2, kCudnnSoftmaxChannel = 1;
constexpr int kCudnnPoolMax = 0, kCudnnPoolWithPadding = 1, kCudnnPoolWithoutPadding = 2;
constexpr int kCudnnPropagateNan = 1;

struct CudaApi {
#define MXPLAN_DECLARE(name, result, arguments) result(*name) arguments = nullptr;
  MXPLAN_CUDA_FUNCTIONS(MXPLAN_DECLARE)
  MXPLAN_CUDNN_FUNCTIONS(MXPLAN_DECLARE)
#undef MXPLAN_DECLARE
};

// Sets the paths of both libraries; the system looks for names.  Call it before the first use.
void SetCudaLibraries(const std::string& cudart, const std::string& cudnn);

// Both libraries, loaded once.  Throws Unsupported with the way out where one is missing.
const CudaApi& Cuda();

// Returns the status.  One that is not 0 is no longer the thread's last error then: whoever
// launches a kernel next and asks for it, TVM or another library, would take it for that kernel's.
int Taken(int status);

// Throws Unsupported with the function's name and what the library says of a status that is not 0,
// which is taken.
void CheckCuda(int status, const char* function);
void CheckCudnn(int status, const char* function);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_API_H_
