// A step of a recurrent layer for one sample, as plain functions on pointers.
//
// The products of the inputs are there already, those of all steps at once.  What is left of a step
// is a row times the recurrent weights, whose reading bounds it.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_KERNELS_H_

#include <cstdint>

namespace mxplan::recurrence {

// Gates as program.py's Recurrent orders them.
enum class Cell : uint8_t { kLstm, kGruLinear, kTanh, kRelu };

// One step of one direction.
struct Step {
  Cell cell = Cell::kLstm;
  int64_t units = 0;
  // [units / lanes][units][gates][lanes], zeros in the tail; in bfloat16
  // [units / lanes][gates][pairs of units][lanes][two]
  const void* recurrence = nullptr;
  const float* bias = nullptr;      // [biases][units]
  const float* products = nullptr;  // [gates][units]: the input's
  const float* before = nullptr;    // [units]: the hidden state, or null for zeros
  float* cell_state = nullptr;      // [units]: an LSTM's, read and written
  float* dst = nullptr;             // [units]
  void* scratch = nullptr;          // of the thread: ScratchOf(units) bytes for bfloat16
};

// Does the step for the units of blocks [begin, end) of lanes.  Every second step goes through the
// blocks `backwards`, so that it meets the weights that the last one has left in the caches.
using Run = void (*)(const Step& step, int64_t begin, int64_t end, bool backwards);

// For numbers of two in bfloat16 each.
constexpr int64_t ScratchOf(int64_t units) { return (units + 1) / 2 * 8; }

struct Kernels {
  int64_t lanes = 0;
  Run run = nullptr;
};

Kernels Avx512Bf16Kernels();  // for weights in bfloat16
Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

}  // namespace mxplan::recurrence

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENCE_KERNELS_H_
