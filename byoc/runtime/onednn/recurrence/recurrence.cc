// The executable of a recurrent layer of few samples; see recurrence.h.
#include "onednn/recurrence/recurrence.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/buffer.h"
#include "onednn/isa.h"
#include "onednn/recurrence/kernels.h"

namespace mxplan::recurrence {
namespace {

using dnnl::memory;

// Less than that is read in a step, again for each sample, before other threads would have met.
constexpr int64_t kBytesOfThread = 64 << 10;
// More are multiplied as fast by oneDNN.
constexpr int64_t kMostSamples = 32;

// The first four are the product's.
enum ArgumentIndex : size_t {
  kSrc,
  kWeights,
  kProducts,
  kScratchpad,
  kRecurrence,
  kBias,
  kDst,
  kState,
  kRounded,
  kFirstOptional
};

// Places of arguments that a step may not have.
struct Optional {
  std::optional<size_t> hidden, cell, last_hidden, last_cell;
};

struct Plan {
  Cell cell = Cell::kLstm;
  Kernels kernels;
  PrimitivePointer product;
  int64_t steps = 0, samples = 1, units = 0, directions = 0, gates = 0, biases = 0;
  int64_t blocks = 0;  // of lanes, in a direction's units
  int threads = 1;
  int64_t weights_bytes = 0;  // of a direction's recurrent ones
  Real weight = kRealFloat;
  bool first_reverse = false;  // the first direction begins at the last step
  Optional optional;

  int64_t EvenUnits() const { return (units + 1) / 2 * 2; }
  int64_t RoundedBytes() const {
    return 2 * directions * samples * EvenUnits() * static_cast<int64_t>(sizeof(uint16_t));
  }
};

class RecurrenceStage final : public MemoryStage {
 public:
  RecurrenceStage(Plan plan, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), plan_(std::move(plan)) {}

  void Execute(dnnl_stream_t stream, const std::vector<dnnl_exec_arg_t>& memories) const override {
    dnnl::error::wrap_c_api(dnnl_primitive_execute(plan_.product->primitive.get(), stream,
                                                   kScratchpad + 1, memories.data()),
                            "could not multiply the inputs of a recurrent layer");
    StartCells(memories);
    StartRounded(memories);
    if (plan_.threads == 1) {
      RunThread(memories, 0, 1);
    } else {
#pragma omp parallel num_threads(plan_.threads)
      RunThread(memories, omp_get_thread_num(), omp_get_num_threads());
    }
    HandOut(memories);
  }

 private:
  using Memories = std::vector<dnnl_exec_arg_t>;

  void StartCells(const Memories& memories) const {
    if (plan_.cell != Cell::kLstm) return;
    float* state = Data(memories[kState]);
    const int64_t count = plan_.directions * plan_.samples * plan_.units;
    if (plan_.optional.cell) {
      std::copy_n(Data(memories[*plan_.optional.cell]), count, state);
    } else {
      std::fill_n(state, count, 0.0F);
    }
  }

  // Rounded states of a direction, those of the last step and of this one in turns.
  uint16_t* RoundedOf(const Memories& memories, int64_t direction, int64_t turn) const {
    auto* rounded = Data<uint16_t>(memories[kRounded]);
    return rounded + (direction * 2 + turn) * plan_.samples * plan_.EvenUnits();
  }

  void StartRounded(const Memories& memories) const {
    const Plan& p = plan_;
    if (p.weight != kRealShort) return;
    // Zeros behind an odd number of units stay.
    std::memset(RoundedOf(memories, 0, 0), 0, static_cast<size_t>(p.RoundedBytes()));
    for (int64_t at = 0; at < p.directions && p.optional.hidden; ++at) {
      const float* hidden = Data(memories[*p.optional.hidden]) + at * p.samples * p.units;
      uint16_t* rounded = RoundedOf(memories, at, 1);
      for (int64_t sample = 0; sample < p.samples; ++sample) {
        p.kernels.round(hidden + sample * p.units, p.units, rounded + sample * p.EvenUnits());
      }
    }
  }

  // Whole directions go to threads while there are no more of these; else each direction's units
  // do, which meet behind every step.
  void RunThread(const Memories& memories, int64_t thread, int64_t threads) const {
    const int64_t members = threads / plan_.directions;
    if (members <= 1) {
      for (int64_t at = thread; at < plan_.directions; at += threads) {
        for (int64_t i = 0; i < plan_.steps; ++i) RunStep(memories, at, i, 0, plan_.blocks);
      }
      return;
    }
    const int64_t direction = thread / members, member = thread % members;
    const int64_t begin = plan_.blocks * member / members;
    const int64_t end = plan_.blocks * (member + 1) / members;
    for (int64_t i = 0; i < plan_.steps; ++i) {
      if (direction < plan_.directions) RunStep(memories, direction, i, begin, end);
#pragma omp barrier
    }
  }

  // The place of a direction's i-th step.
  int64_t PlaceOf(int64_t direction, int64_t i) const {
    return plan_.first_reverse || direction == 1 ? plan_.steps - 1 - i : i;
  }

  void RunStep(const Memories& memories, int64_t direction, int64_t i, int64_t begin,
               int64_t end) const {
    const Plan& p = plan_;
    const int64_t row = p.directions * p.units;
    float* outputs = Data(memories[kDst]) + direction * p.units;
    auto output = [&](int64_t at) { return outputs + at * p.samples * row; };
    const int64_t place = PlaceOf(direction, i);
    Step step;
    step.cell = p.cell;
    step.samples = p.samples;
    step.units = p.units;
    step.recurrence = Data<char>(memories[kRecurrence]) + direction * p.weights_bytes;
    step.bias = Data(memories[kBias]) + direction * p.biases * p.units;
    step.products = Data(memories[kProducts]) +
                    (place * p.samples * p.directions + direction) * p.gates * p.units;
    step.next_products = p.gates * row;
    if (i > 0) {
      step.before = output(PlaceOf(direction, i - 1));
      step.next_before = row;
    } else if (p.optional.hidden) {
      step.before = Data(memories[*p.optional.hidden]) + direction * p.samples * p.units;
      step.next_before = p.units;
    }
    step.cell_state = Data(memories[kState]) + direction * p.samples * p.units;
    step.next_cell_state = p.units;
    step.dst = output(place);
    step.next_dst = row;
    if (p.weight == kRealShort) {
      step.rounded_before = RoundedOf(memories, direction, (i + 1) % 2);
      step.rounded_dst = RoundedOf(memories, direction, i % 2);
      step.next_rounded = p.EvenUnits();
    }
    p.kernels.run[p.weight](step, begin, end, i % 2 == 1);
  }

  void HandOut(const Memories& memories) const {
    const Plan& p = plan_;
    for (int64_t at = 0; at < p.directions && p.optional.last_hidden; ++at) {
      for (int64_t sample = 0; sample < p.samples; ++sample) {
        const int64_t row = (PlaceOf(at, p.steps - 1) * p.samples + sample) * p.directions + at;
        std::copy_n(Data(memories[kDst]) + row * p.units, p.units,
                    Data(memories[*p.optional.last_hidden]) + (at * p.samples + sample) * p.units);
      }
    }
    if (p.optional.last_cell) {
      std::copy_n(Data(memories[kState]), p.directions * p.samples * p.units,
                  Data(memories[*p.optional.last_cell]));
    }
  }

  Plan plan_;
};

Kernels KernelsHere() {
  if (HasIsa(dnnl::cpu_isa::avx512_core_bf16)) return Avx512Bf16Kernels();
  return ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)();
}

std::optional<Cell> CellOf(const StepBuilder& b) {
  constexpr std::pair<const char*, Cell> kCells[] = {{"lstm", Cell::kLstm},
                                                     {"gru_linear", Cell::kGruLinear},
                                                     {"tanh", Cell::kTanh},
                                                     {"relu", Cell::kRelu}};
  for (const auto& [name, cell] : kCells) {
    if (b.Text("cell") == name) return cell;
  }
  // A reset in front of the product makes the candidate's wait for the other gates.
  return std::nullopt;
}

memory::desc Plain(const Dims& dims, memory::data_type type = memory::data_type::f32) {
  return MakeDesc(dims, type, PlainTag(dims.size()));
}

// The product of the inputs of all steps with the weights of all gates.
PrimitivePointer ProductOf(const memory::desc& src, const memory::desc& weights,
                           const memory::desc& products) {
  PrimitiveKey key(typeid(dnnl::matmul));
  for (const memory::desc& desc : {src, weights, products}) key.Put(desc);
  StepDescriptor product;
  product.kind = "matmul";
  product.src = src.get_dims();
  product.weights = weights.get_dims();
  product.dst = products.get_dims();
  return GetPrimitive<dnnl::matmul>(key, {"", RefusalsOf(product)}, [&] {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return dnnl::matmul::primitive_desc(CpuEngine(), src, weights, products, attr);
  });
}

int ThreadsOf(int64_t directions, int64_t bytes) {
  const int64_t most = omp_get_max_threads();
  const int64_t members = std::min(most / directions, bytes / kBytesOfThread);
  return static_cast<int>(std::min(most, directions * std::max<int64_t>(members, 1)));
}

}  // namespace

bool Takes(const StepBuilder& b) {
  const bool few = b.Get("src").dims[1] <= kMostSamples;
  if (!few || !CellOf(b) || b.Has("peepholes") || !b.Has("bias")) return false;
  for (int64_t extent : b.Get("weights").dims) {
    if (extent == 0) return false;
  }
  const memory::data_type type = b.Desc("weights").get_data_type();
  const bool is_short = type == memory::data_type::bf16;
  if (is_short && KernelsHere().run[kRealShort] == nullptr) return false;
  for (const Operand& operand : b.step().operands) {
    const ResolvedValue& value = b.Get(operand.value);
    const memory::desc desc = b.Desc(operand.value);
    const bool packed = operand.role == "weights" || operand.role == "recurrence";
    const bool multiplied = packed || operand.role == "src";
    if (desc.get_data_type() != (multiplied ? type : memory::data_type::f32)) return false;
    if (packed || value.IsAny()) continue;
    if (!SamePlacement(desc, Plain(value.dims, desc.get_data_type()))) return false;
  }
  return b.IsConstant("weights") && b.IsConstant("recurrence");
}

void Build(StepBuilder* b) {
  const Dims weights = b->Get("weights").dims;  // [1, directions, inputs, gates, units]
  for (const Operand& operand : b->step().operands) b->Fixed(operand.value);
  Plan plan;
  plan.cell = *CellOf(*b);
  const memory::data_type type = b->Desc("weights").get_data_type();
  plan.kernels = KernelsHere();
  plan.weight = RealOf(b->Desc("recurrence"), "recurrence");
  plan.steps = b->Get("src").dims[0];
  plan.samples = b->Get("src").dims[1];
  plan.directions = weights[1];
  plan.gates = weights[3];
  plan.units = weights[4];
  plan.biases = b->Get("bias").dims[2];
  plan.blocks = (plan.units + plan.kernels.lanes - 1) / plan.kernels.lanes;
  plan.first_reverse = b->Text("direction") == "reverse";

  const int64_t columns = plan.directions * plan.gates * plan.units;
  const memory::desc src = Plain({plan.steps * plan.samples, weights[2]}, type);
  const memory::desc products = Plain({plan.steps * plan.samples, columns});
  const memory::desc any = MakeDesc({weights[2], columns}, type, "any");
  plan.product = ProductOf(src, any, products);
  const dnnl::primitive_desc_base& pd = plan.product->desc;

  auto value = [&](const char* role, int id = 0) {
    return MemoryArgument{id, Argument::Source::kValue, b->Id(role), b->Desc(role)};
  };
  int64_t scratch = 0;
  auto own = [&](int id, const memory::desc& desc) {
    MemoryArgument made = {id, Argument::Source::kScratchpad, -1, desc, scratch};
    scratch += AlignUp(static_cast<int64_t>(desc.get_size()));
    return made;
  };
  // The inputs' weights as one matrix, gates of all directions side by side.
  const memory::desc rows = MakeDesc(weights, type, "acbde");
  const Packing as_matrix = {Packing::Kind::kReread, rows, Plain({weights[2], columns}, type)};
  // The recurrent ones as blocks of this step's units, which stand in front of the last one's.
  const Dims seen = {plan.directions, plan.units, plan.units, plan.gates};
  const memory::desc in_blocks =
      plan.weight == kRealShort
          ? MakeDesc(seen, type, "aBdC16b2c")
          : MakeDesc(seen, type, "aBcd" + std::to_string(plan.kernels.lanes) + "b");
  const Packing as_blocks = {Packing::Kind::kReread, Plain(b->Get("recurrence").dims, type),
                             MakeDesc(seen, type, "acdb")};
  const auto packed_bytes = static_cast<int64_t>(in_blocks.get_size());
  plan.weights_bytes = packed_bytes / plan.directions;
  plan.threads = ThreadsOf(plan.directions, plan.weights_bytes * plan.samples);
  std::vector<MemoryArgument> arguments = {
      {DNNL_ARG_SRC, Argument::Source::kValue, b->Id("src"), src},
      b->Packed(DNNL_ARG_WEIGHTS, b->Id("weights"), pd.weights_desc(), as_matrix),
      own(DNNL_ARG_DST, products),
      own(DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()),
      b->Packed(0, b->Id("recurrence"), in_blocks, as_blocks),
      value("bias"),
      value("dst"),
      own(0, Plain({plan.directions, plan.samples, plan.units})),
      own(0, MakeDesc({plan.RoundedBytes()}, memory::data_type::u8, "a"))};
  auto optional = [&](const char* role) -> std::optional<size_t> {
    if (!b->Has(role)) return std::nullopt;
    arguments.push_back(value(role));
    return arguments.size() - 1;
  };
  plan.optional = {optional("hidden"), optional("cell"), optional("last_hidden"),
                   optional("last_cell")};
  b->NeedScratchpad(scratch);
  b->NeedWeights(static_cast<int64_t>(pd.weights_desc().get_size()) + packed_bytes);
  b->AddStage(std::make_unique<RecurrenceStage>(std::move(plan), arguments), kName);
}

}  // namespace mxplan::recurrence
