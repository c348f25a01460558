// The plan and the arguments that both ways of a recurrent layer in training share; see stage.h.
#include "onednn/recurrent_training/stage.h"

#include <algorithm>

#include "base/error.h"
#include "memory/buffer.h"
#include "onednn/isa.h"

namespace mxplan::recurrent_training {
namespace {

// Less than that is done in a step before other threads would have met.
constexpr int64_t kNumbersOfThread = 4 << 10;

Cell CellOf(const StepBuilder& b) {
  const std::string& cell = b.Text("cell");
  return cell == "lstm" ? Cell::kLstm : cell == "gru" ? Cell::kGru : Cell::kGruLinear;
}

}  // namespace

Plan::Plan(StepBuilder* b) {
  const Dims outputs = b->Get(b->Has("outputs") ? "outputs" : "dst").dims;
  const Dims recurrence = b->Get("recurrence").dims;  // [directions, gates * units, units]
  kernels = ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)();
  layer.cell = CellOf(*b);
  layer.units = recurrence[2];
  const std::vector<int64_t>& order = b->Integers("places");
  std::copy(order.begin(), order.end(), layer.places);
  steps = outputs[0];
  samples = outputs[1];
  directions = recurrence[0];
  gates = static_cast<int64_t>(order.size());
  first_reverse = b->Text("direction") == "reverse";
  if (steps == 0) ThrowUnsupported("a recurrent layer in training over no steps");
  const int64_t most = samples * units() / kNumbersOfThread;
  threads = static_cast<int>(std::clamp<int64_t>(most, 1, omp_get_max_threads()));
}

int64_t Plan::ProductBytes() const {
  int64_t bytes = 0;
  for (const StepProduct& one : products) bytes += one.packed_bytes() + one.scratchpad_bytes();
  return bytes;
}

std::vector<StepProduct::Use> Plan::Uses(dnnl_stream_t stream, const float* recurrence,
                                         int64_t direction, char* scratch) const {
  const float* own = recurrence + direction * gates * units() * units();
  std::vector<StepProduct::Use> uses;
  for (const StepProduct& one : products) {
    uses.emplace_back(one, stream, own, scratch);
    scratch += one.packed_bytes() + one.scratchpad_bytes();
  }
  return uses;
}

void Arguments::Take(const char* role) {
  if (!b_->Has(role)) return;
  const dnnl::memory::desc given = b_->Fixed(role);
  const dnnl::memory::desc plain =
      MakeDesc(given.get_dims(), given.get_data_type(), PlainTag(given.get_dims().size()));
  if (given.get_data_type() != dnnl::memory::data_type::f32) {
    ThrowUnsupported(role, " of another type than float32");
  }
  if (!SamePlacement(given, plain)) {
    ThrowUnsupported(role, " in layout ", TagOf(given), ", expected the plain one");
  }
  roles_.emplace_back(role);
  arguments_.push_back({0, Argument::Source::kValue, b_->Id(role), plain});
}

void Arguments::Scratch(const char* name, int64_t bytes) {
  int64_t begin = 0;
  for (const MemoryArgument& one : arguments_) {
    if (one.source != Argument::Source::kScratchpad) continue;
    begin = one.offset + AlignUp(static_cast<int64_t>(one.desc.get_size()));
  }
  const dnnl::memory::desc desc = MakeDesc({bytes}, dnnl::memory::data_type::u8, "a");
  roles_.emplace_back(name);
  arguments_.push_back({0, Argument::Source::kScratchpad, -1, desc, begin});
  b_->NeedScratchpad(begin + AlignUp(bytes));
}

int64_t Arguments::Find(const std::string& role) const {
  const auto found = std::find(roles_.begin(), roles_.end(), role);
  return found == roles_.end() ? -1 : found - roles_.begin();
}

}  // namespace mxplan::recurrent_training
