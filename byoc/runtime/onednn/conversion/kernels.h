// Numbers converted between real ones and integers of 8 bits, and real ones in another order of
// axes, as plain functions on pointers.
//
//   integer = round(real / scale) + zero, within its type       real = (integer - zero) * scale
//
// A half goes to the even integer before the zero point is added, as ONNX has it.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CONVERSION_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CONVERSION_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"

namespace mxplan::conversion {

constexpr bool IsReal(Number number) {
  return number == Number::kFloat || number == Number::kShort;
}

// Scales and zero points of the integers of both sides; real numbers have 1 and 0.
struct Scales {
  float src = 1, dst = 1;
  int32_t src_zero = 0, dst_zero = 0;
};

// to[i] from from[i], `count` of them.
using Flat = void (*)(const void* from, int64_t count, const Scales& scales, void* to);

// Rows become columns: to[i * to_row + j] from from[j * from_row + i].
struct Turn {
  int64_t rows = 0, columns = 0;  // numbers of j and of i
  int64_t from_row = 0, to_row = 0;
};
using Turned = void (*)(const void* from, const Turn& turn, const Scales& scales, void* to);

struct Kernels {
  const char* name = "";
  Flat flat = nullptr;      // null where both sides are real
  Turned turned = nullptr;  // null where both sides are integers, or both bfloat16
};

// Real numbers become others only where their order changes too, by `turned`; there is nothing for
// two sides of bfloat16.
Kernels Avx512Kernels(Number src, Number dst);
Kernels Avx2Kernels(Number src, Number dst);
Kernels BaseKernels(Number src, Number dst);

}  // namespace mxplan::conversion

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_CONVERSION_KERNELS_H_
