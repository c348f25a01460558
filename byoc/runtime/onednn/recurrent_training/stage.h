// Recurrent layers in training: all steps forward, which keep their gates, and all steps backward.
//
// Products of all inputs at once, and gradients of weights, are steps of their own (matmul).  What
// is left of a step is one product with the recurrent weights, packed once for all steps, and the
// arithmetic of its gates (kernels.h).
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_STAGE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_STAGE_H_

#include <omp.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onednn/builder/step_builder.h"
#include "onednn/recurrent_training/kernels.h"
#include "onednn/recurrent_training/step_product.h"

namespace mxplan::recurrent_training {

// A layer and its products, for either way.
struct Plan {
  Kernels kernels;
  Layer layer;
  int64_t steps = 0, samples = 0, directions = 0, gates = 0;
  bool first_reverse = false;  // the first direction begins at the last step
  int threads = 1;
  std::vector<StepProduct> products;

  explicit Plan(StepBuilder* b);

  int64_t units() const { return layer.units; }
  // Numbers of one step of a tensor with `rows` rows of units for each direction.
  int64_t StepOf(int64_t rows) const { return samples * StrideOf(rows); }
  int64_t StrideOf(int64_t rows) const { return directions * rows * units(); }
  // The step that a direction does as its i-th, and the one before it, which may not be.
  int64_t PlaceOf(int64_t direction, int64_t i) const {
    return first_reverse || direction == 1 ? steps - 1 - i : i;
  }

  // Bytes of the scratchpad of one product at a time, in the order of `products`.
  int64_t ProductBytes() const;
  // Runs a kernel over all units of all samples, by any number of threads the same way.
  template <typename Kernel, typename Step>
  void Run(Kernel kernel, const Step& step, Half half) const {
    const int64_t blocks = samples * ((units() + kernels.lanes - 1) / kernels.lanes);
    if (threads == 1) return kernel(step, half, 0, blocks);
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      kernel(step, half, blocks * thread / team, blocks * (thread + 1) / team);
    }
  }
  // The products of one direction, whose weights are packed into `scratch`.
  std::vector<StepProduct::Use> Uses(dnnl_stream_t stream, const float* recurrence,
                                     int64_t direction, char* scratch) const;
};

// A stage's arguments by role: its memory objects, in the order in which roles were taken.
class Arguments {
 public:
  explicit Arguments(StepBuilder* b) : b_(b) {}

  // Adds the operand in a role, if the step has one, as it is: plain.
  void Take(const char* role);
  // Adds bytes of the step's own under a name, and the scratchpad that they make.
  void Scratch(const char* name, int64_t bytes);
  const std::vector<MemoryArgument>& all() const { return arguments_; }
  // The place of a role; -1 without one.
  int64_t Find(const std::string& role) const;

 private:
  StepBuilder* b_;
  std::vector<std::string> roles_;
  std::vector<MemoryArgument> arguments_;
};

// A stage of either way: addresses of rows and states by the places of its arguments.
class LayerStage : public MemoryStage {
 protected:
  using Memories = std::vector<dnnl_exec_arg_t>;

  LayerStage(Plan plan, const Arguments& arguments)
      : MemoryStage(arguments.all()), plan_(std::move(plan)) {}

  // Null for an argument that the step lacks.
  static float* At(const Memories& memories, int64_t place) {
    return place < 0 ? nullptr : Data(memories[static_cast<size_t>(place)]);
  }
  // The rows of a step and a direction, `rows` of units for each sample.
  Written Of(const Memories& memories, int64_t place, int64_t rows, int64_t step,
             int64_t direction) const {
    float* data = At(memories, place);
    if (!data) return {};
    return {data + step * plan_.StepOf(rows) + direction * rows * plan_.units(),
            plan_.StrideOf(rows)};
  }
  // The state of a direction, one for all steps.
  Written State(const Memories& memories, int64_t place, int64_t direction) const {
    float* data = At(memories, place);
    if (!data) return {};
    return {data + direction * plan_.samples * plan_.units(), plan_.units()};
  }
  static Read ToRead(const Written& rows) { return {rows.data, rows.stride}; }

  Plan plan_;
};

void BuildForward(StepBuilder* b);
void BuildBackward(StepBuilder* b);

}  // namespace mxplan::recurrent_training

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_STAGE_H_
