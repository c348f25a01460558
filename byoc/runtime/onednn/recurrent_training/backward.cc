// All steps of a recurrent layer backward: gradients of its sums and of its states; see stage.h.
#include <algorithm>
#include <memory>
#include <utility>

#include "onednn/recurrent_training/stage.h"

namespace mxplan::recurrent_training {
namespace {

constexpr const char* kBackward = "recurrent_backward";

struct BackwardPlaces {
  explicit BackwardPlaces(const Arguments& a)
      : src(a.Find("src")),
        recurrence(a.Find("recurrence")),
        outputs(a.Find("outputs")),
        gradient(a.Find("gradient")),
        cells(a.Find("cells")),
        hidden(a.Find("hidden")),
        cell(a.Find("cell")),
        last_cell_gradient(a.Find("last_cell_gradient")),
        dst(a.Find("dst")),
        reset_gradient(a.Find("reset_gradient")),
        hidden_gradient(a.Find("hidden_gradient")),
        cell_gradient(a.Find("cell_gradient")),
        rows(a.Find("rows")),
        packed(a.Find("packed")) {}

  int64_t src, recurrence, outputs, gradient, cells, hidden, cell, last_cell_gradient, dst;
  int64_t reset_gradient, hidden_gradient, cell_gradient, rows, packed;
};

class BackwardStage final : public LayerStage {
 public:
  BackwardStage(Plan plan, const Arguments& arguments)
      : LayerStage(std::move(plan), arguments), at_(arguments) {}

  void Execute(dnnl_stream_t stream, const std::vector<dnnl_exec_arg_t>& memories) const override {
    for (int64_t direction = 0; direction < plan_.directions; ++direction) {
      auto uses = plan_.Uses(stream, At(memories, at_.recurrence), direction,
                             Data<char>(memories[static_cast<size_t>(at_.packed)]));
      StartCells(memories, direction);
      for (int64_t i = plan_.steps; i-- > 0;) RunStep(memories, direction, i, &uses);
    }
  }

 private:
  void StartCells(const Memories& memories, int64_t direction) const {
    const Written cell = State(memories, at_.cell_gradient, direction);
    if (!cell.data) return;
    const int64_t count = plan_.samples * plan_.units();
    const Written given = State(memories, at_.last_cell_gradient, direction);
    if (given.data) {
      std::copy_n(given.data, count, cell.data);
    } else {
      std::fill_n(cell.data, count, 0.0F);
    }
  }

  void RunStep(const Memories& memories, int64_t direction, int64_t i,
               std::vector<StepProduct::Use>* uses) const {
    const Plan& p = plan_;
    const int64_t place = p.PlaceOf(direction, i), units = p.units();
    BackwardStep step;
    step.layer = p.layer;
    step.first = i == p.steps - 1;
    step.gates = ToRead(Of(memories, at_.src, kKept, place, direction));
    step.gradient = ToRead(Of(memories, at_.gradient, 1, place, direction));
    step.cells = ToRead(Of(memories, at_.cells, 1, place, direction));
    if (i > 0) {
      const int64_t last = p.PlaceOf(direction, i - 1);
      step.before = ToRead(Of(memories, at_.outputs, 1, last, direction));
      step.cell_before = ToRead(Of(memories, at_.cells, 1, last, direction));
    } else {
      step.before = ToRead(State(memories, at_.hidden, direction));
      step.cell_before = ToRead(State(memories, at_.cell, direction));
    }
    step.dst = Of(memories, at_.dst, p.gates, place, direction);
    step.reset = Of(memories, at_.reset_gradient, 1, place, direction);
    step.state = State(memories, at_.hidden_gradient, direction);
    step.cell_state = State(memories, at_.cell_gradient, direction);
    float* rows = At(memories, at_.rows);
    if (p.layer.cell == Cell::kGruLinear) step.recurrent = {rows, p.gates * units};
    p.Run(p.kernels.backward, step, Half::kFirst);
    switch (p.layer.cell) {
      case Cell::kLstm:
        return (*uses)[0].Multiply(step.dst.data, step.state.data);
      case Cell::kGruLinear:
        return (*uses)[0].Multiply(rows, step.state.data);
      case Cell::kGru:
        (*uses)[1].Multiply(step.dst.data + 2 * units, rows);
        step.reset_product = {rows, units};
        p.Run(p.kernels.backward, step, Half::kSecond);
        return (*uses)[0].Multiply(step.dst.data, step.state.data);
    }
  }

  BackwardPlaces at_;
};

}  // namespace

void BuildBackward(StepBuilder* b) {
  if (b->Refuses(kBackward)) b->ThrowRefused();
  Plan plan(b);
  const int64_t units = plan.units(), stride = plan.StrideOf(plan.gates);
  auto product = [&](int64_t first, int64_t gates, int64_t src_stride, bool adds) {
    plan.products.emplace_back(
        ProductShape{plan.samples, gates * units, units, src_stride, first * units, false, adds});
  };
  int64_t rows = 0;  // of units for each sample
  switch (plan.layer.cell) {
    case Cell::kLstm:
      product(0, plan.gates, stride, false);
      break;
    case Cell::kGruLinear:
      rows = plan.gates;
      product(0, plan.gates, rows * units, true);
      break;
    case Cell::kGru:
      rows = 1;
      product(0, 2, stride, true);
      product(2, 1, stride, false);
      break;
  }
  Arguments arguments(b);
  for (const char* role :
       {"src", "recurrence", "outputs", "gradient", "cells", "hidden", "cell", "last_cell_gradient",
        "dst", "reset_gradient", "hidden_gradient", "cell_gradient"}) {
    arguments.Take(role);
  }
  if (rows > 0) arguments.Scratch("rows", kFloatBytes * plan.samples * rows * units);
  arguments.Scratch("packed", plan.ProductBytes());
  b->AddStage(std::make_unique<BackwardStage>(std::move(plan), arguments), kBackward);
}

}  // namespace mxplan::recurrent_training
