// One step of a recurrent layer in training, without its products: gates and states forward, and
// gradients of gates and states backward, as plain functions on pointers.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_KERNELS_H_

#include <cstdint>

namespace mxplan::recurrent_training {

enum class Cell : uint8_t { kLstm, kGru, kGruLinear };

// Half of a step.  The candidate of a GRU whose reset stands in front of its product waits for a
// product of its own; every other cell does all in the first half.
enum class Half : uint8_t { kFirst, kSecond };

// Gates, or numbers in their place, that a layer keeps of each step for its gradients.
constexpr int64_t kKept = 4;

// One row of `units` numbers, or several, for each sample.  No data: zeros.
template <typename T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;  // between samples

  T* of(int64_t sample) const { return data ? data + sample * stride : nullptr; }
};
using Read = Rows<const float>;
using Written = Rows<float>;

constexpr int64_t kFloatBytes = sizeof(float);

struct Layer {
  Cell cell = Cell::kLstm;
  int64_t units = 0;
  int64_t places[kKept] = {};  // of the gates among those of the weights: i, o, f, c; z, r, n
};

struct ForwardStep {
  Layer layer;
  Read products;   // [gates][units]: of the inputs, with their biases
  Read recurrent;  // [gates][units]: of the state before; no data in a first step from zeros
  Read bias;       // [units], one for all samples: the one behind the reset of a linear GRU
  Read before;     // [units]: the hidden state
  Read cell_before;
  Written dst;
  Written gates;  // [kKept][units]: i, o, f, c; z, r, n and the product or the state that r is for
  Written cells;
};

struct BackwardStep {
  Layer layer;
  Read gates;     // as forward kept them
  Read gradient;  // of dst
  Read before, cell_before, cells;
  Read reset_product;  // GRU, second half: the gradient of the state behind the reset
  Written dst;         // [gates][units]: gradients of the sums in front of the activations
  Written recurrent;   // linear GRU: the same of the state's products; else no data
  Written reset;       // linear GRU: its candidate's row alone, for the gradient of the weights
  // The state's gradient: read and left without what the products will add.
  Written state;
  Written cell_state;  // read and written
  bool first = false;  // nothing is in `state` yet
};

// Units [begin, end) of the samples' units, one sample behind the other, in blocks of lanes.
using Forward = void (*)(const ForwardStep& step, Half half, int64_t begin, int64_t end);
using Backward = void (*)(const BackwardStep& step, Half half, int64_t begin, int64_t end);

struct Kernels {
  int64_t lanes = 0;
  Forward forward = nullptr;
  Backward backward = nullptr;
};

Kernels Avx512Kernels();
Kernels Avx2Kernels();
Kernels BaseKernels();

}  // namespace mxplan::recurrent_training

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_KERNELS_H_
