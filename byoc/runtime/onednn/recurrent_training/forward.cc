// All steps of a recurrent layer forward, keeping what its gradients are made of; see stage.h.
#include <algorithm>
#include <memory>
#include <utility>

#include "onednn/recurrent_training/stage.h"

namespace mxplan::recurrent_training {
namespace {

constexpr const char* kForward = "recurrent_training";

struct ForwardPlaces {
  explicit ForwardPlaces(const Arguments& a)
      : src(a.Find("src")),
        recurrence(a.Find("recurrence")),
        bias(a.Find("bias")),
        hidden(a.Find("hidden")),
        cell(a.Find("cell")),
        dst(a.Find("dst")),
        gates(a.Find("kept_gates")),
        cells(a.Find("kept_cells")),
        last_cell(a.Find("last_cell")),
        products(a.Find("products")),
        packed(a.Find("packed")) {}

  int64_t src, recurrence, bias, hidden, cell, dst, gates, cells, last_cell, products, packed;
};

class ForwardStage final : public LayerStage {
 public:
  ForwardStage(Plan plan, const Arguments& arguments)
      : LayerStage(std::move(plan), arguments), at_(arguments) {}

  void Execute(dnnl_stream_t stream, const std::vector<dnnl_exec_arg_t>& memories) const override {
    for (int64_t direction = 0; direction < plan_.directions; ++direction) {
      auto uses = plan_.Uses(stream, At(memories, at_.recurrence), direction,
                             Data<char>(memories[static_cast<size_t>(at_.packed)]));
      for (int64_t i = 0; i < plan_.steps; ++i) RunStep(memories, direction, i, &uses);
      HandOut(memories, direction);
    }
  }

 private:
  void RunStep(const Memories& memories, int64_t direction, int64_t i,
               std::vector<StepProduct::Use>* uses) const {
    const Plan& p = plan_;
    const int64_t place = p.PlaceOf(direction, i), units = p.units();
    ForwardStep step;
    step.layer = p.layer;
    step.products = ToRead(Of(memories, at_.src, p.gates, place, direction));
    if (at_.bias >= 0) step.bias = {At(memories, at_.bias) + direction * units, 0};
    if (i > 0) {
      const int64_t last = p.PlaceOf(direction, i - 1);
      step.before = ToRead(Of(memories, at_.dst, 1, last, direction));
      step.cell_before = ToRead(Of(memories, at_.cells, 1, last, direction));
    } else {
      step.before = ToRead(State(memories, at_.hidden, direction));
      step.cell_before = ToRead(State(memories, at_.cell, direction));
    }
    step.dst = Of(memories, at_.dst, 1, place, direction);
    step.gates = Of(memories, at_.gates, kKept, place, direction);
    step.cells = Of(memories, at_.cells, 1, place, direction);
    float* products = At(memories, at_.products);
    const bool zeros = !step.before.data;
    if (!zeros) {
      // A state that is given has other strides than those that were written.
      const float* before = i > 0 ? step.before.data : Spread(memories, step.before);
      (*uses)[0].Multiply(before, products);
      step.recurrent = {products, (p.layer.cell == Cell::kGru ? 2 : p.gates) * units};
    }
    p.Run(p.kernels.forward, step, Half::kFirst);
    if (p.layer.cell != Cell::kGru) return;
    if (!zeros) {
      (*uses)[1].Multiply(step.gates.data + 3 * units, products);
      step.recurrent = {products, units};
    }
    p.Run(p.kernels.forward, step, Half::kSecond);
  }

  // A given state at the stride of outputs.
  const float* Spread(const Memories& memories, const Read& state) const {
    if (state.stride == plan_.StrideOf(1)) return state.data;
    float* spread = At(memories, at_.products) + plan_.samples * plan_.gates * plan_.units();
    for (int64_t n = 0; n < plan_.samples; ++n) {
      std::copy_n(state.of(n), plan_.units(), spread + n * plan_.StrideOf(1));
    }
    return spread;
  }

  void HandOut(const Memories& memories, int64_t direction) const {
    if (at_.last_cell < 0) return;
    const int64_t units = plan_.units(), last = plan_.PlaceOf(direction, plan_.steps - 1);
    const Written cells = Of(memories, at_.cells, 1, last, direction);
    float* to = At(memories, at_.last_cell) + direction * plan_.samples * units;
    for (int64_t n = 0; n < plan_.samples; ++n) std::copy_n(cells.of(n), units, to + n * units);
  }

  ForwardPlaces at_;
};

}  // namespace

void BuildForward(StepBuilder* b) {
  if (b->Refuses(kForward)) b->ThrowRefused();
  Plan plan(b);
  const int64_t units = plan.units();
  auto product = [&](int64_t first, int64_t gates, int64_t stride) {
    plan.products.emplace_back(
        ProductShape{plan.samples, units, gates * units, stride, first * units, true, false});
  };
  if (plan.layer.cell == Cell::kGru) {
    product(0, 2, plan.StrideOf(1));
    product(2, 1, plan.StrideOf(kKept));
  } else {
    product(0, plan.gates, plan.StrideOf(1));
  }
  Arguments arguments(b);
  for (const char* role : {"src", "recurrence", "bias", "hidden", "cell", "dst", "kept_gates",
                           "kept_cells", "last_cell"}) {
    arguments.Take(role);
  }
  const bool spreads = plan.directions > 1 && b->Has("hidden");
  arguments.Scratch("products", kFloatBytes * plan.samples *
                                    (plan.gates * units + (spreads ? plan.StrideOf(1) : 0)));
  arguments.Scratch("packed", plan.ProductBytes());
  b->AddStage(std::make_unique<ForwardStage>(std::move(plan), arguments), kForward);
}

}  // namespace mxplan::recurrent_training
