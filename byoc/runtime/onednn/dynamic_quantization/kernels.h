// Real numbers as integers by a scale that follows from them, as plain functions on pointers.
//
//   scale = (largest - least) / 255, 0 counted among the numbers;  zero = round(-least / scale)
//   dst   = round(x / scale) + zero, between 0 and 255
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DYNAMIC_QUANTIZATION_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DYNAMIC_QUANTIZATION_KERNELS_H_

#include <cstdint>

namespace mxplan::dynamic_quantization {

// The least and the largest of some numbers, 0 among them.
struct Range {
  float least = 0, largest = 0;
};

struct Kernels {
  const char* name = "";
  Range (*range)(const float* from, int64_t count) = nullptr;
  void (*convert)(const float* from, int64_t count, float scale, int32_t zero,
                  uint8_t* to) = nullptr;
};

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

// The kernels of the instruction set that oneDNN uses.
Kernels SelectKernels();

}  // namespace mxplan::dynamic_quantization

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DYNAMIC_QUANTIZATION_KERNELS_H_
