// A step of a recurrent layer for few samples, as plain functions on pointers.
//
// The products of the inputs are there already, those of all steps at once.  What is left of a step
// is rows times the recurrent weights, whose reading bounds it where there is one.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"

namespace mxplan::recurrence {

// Gates as program.py's Recurrent orders them.
enum class Cell : uint8_t { kLstm, kGruLinear, kTanh, kRelu };

// One step of one direction.
struct Step {
  Cell cell = Cell::kLstm;
  int64_t samples = 1, units = 0;
  // [units / lanes][units][gates][lanes], zeros in the tail; in bfloat16
  // [units / lanes][gates][pairs of units][lanes][two]
  const void* recurrence = nullptr;
  const float* bias = nullptr;  // [biases][units]
  // Of the first sample; the next one's are so many numbers behind.
  const float* products = nullptr;  // [gates][units]: the input's
  const float* before = nullptr;    // [units]: the hidden state, or null for zeros
  float* cell_state = nullptr;      // [units]: an LSTM's, read and written
  float* dst = nullptr;             // [units]
  int64_t next_products = 0, next_before = 0, next_cell_state = 0, next_dst = 0;
  // Weights in bfloat16 are multiplied with `before` rounded: [even units], zero behind the last
  // one; the new state, rounded for the next step.
  const uint16_t* rounded_before = nullptr;
  uint16_t* rounded_dst = nullptr;
  int64_t next_rounded = 0;
};

// Does the step for the units of blocks [begin, end) of lanes.  Every second step goes through the
// blocks `backwards`, so that it meets the weights that the last one has left in the caches.
using Run = void (*)(const Step& step, int64_t begin, int64_t end, bool backwards);

struct Kernels {
  int64_t lanes = 0;
  Run run[kReals] = {};  // by the type of recurrent weights; bfloat16: AVX-512 alone
  void (*round)(const float* from, int64_t count, uint16_t* to) = nullptr;
};

Kernels Avx512Bf16Kernels();
Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

}  // namespace mxplan::recurrence

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_KERNELS_H_
