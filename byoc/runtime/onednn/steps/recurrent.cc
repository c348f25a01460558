// Recurrent layers: LSTM, GRU with either place of its reset gate, plain cells.
//
// The gates stand in oneDNN's order already (program.py's Recurrent).  A layer over no steps hands
// its states on.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onednn/builder/fill.h"
#include "onednn/recurrence/recurrence.h"
#include "onednn/recurrent_training/stage.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

using dnnl::memory;

dnnl::rnn_direction Direction(const StepBuilder& b) {
  const std::string& direction = b.Text("direction");
  if (direction == "forward") return dnnl::rnn_direction::unidirectional_left2right;
  if (direction == "reverse") return dnnl::rnn_direction::unidirectional_right2left;
  return dnnl::rnn_direction::bidirectional_concat;
}

// Operands as descriptors, empty ones for roles that the step lacks, and their bindings.
//
// oneDNN 3.2 reads rows by their stride, also where there is only one: other names of the plain
// placement make its kernels crash, so all are called plain.
class Operands {
 public:
  explicit Operands(StepBuilder* b) : b_(b) {}

  memory::desc Plain(const char* role, int id) {
    if (!b_->Has(role)) return {};
    memory::desc given = b_->Fixed(role);
    memory::desc plain =
        MakeDesc(given.get_dims(), given.get_data_type(), PlainTag(given.get_dims().size()));
    if (!SamePlacement(given, plain)) {
      ThrowUnsupported(role, " in layout ", TagOf(given), ", expected the plain one");
    }
    bindings_.push_back({id, b_->Id(role), plain});
    return plain;
  }

  memory::desc Weights(const char* role, int id) {
    if (!b_->IsConstant(role)) return Plain(role, id);
    bindings_.push_back({id, b_->Id(role)});
    return b_->Weights(role);
  }

  const std::vector<StepBuilder::Binding>& bindings() const { return bindings_; }

 private:
  StepBuilder* b_;
  std::vector<StepBuilder::Binding> bindings_;
};

// A state behind no steps is the one before them: given, or zero.
void HandOn(StepBuilder* b, const char* from, const char* to) {
  if (!b->Has(to)) return;
  memory::desc last = b->Fixed(to);
  if (b->Has(from)) {
    b->AddReorder(b->Id(from), b->Fixed(from), b->Id(to), last);
  } else if (!IsEmpty(last)) {
    MemoryArgument whole{DNNL_ARG_DST, Argument::Source::kValue, b->Id(to), last};
    b->AddStage(MakeFill(whole, 0.0f), "fill");
  }
}

void BuildOverNothing(StepBuilder* b) {
  b->Fixed("dst");
  HandOn(b, "hidden", "last_hidden");
  HandOn(b, "cell", "last_cell");
}

// Descriptors that every kind of cell has.
struct Layer {
  explicit Layer(Operands* o)
      : src(o->Plain("src", DNNL_ARG_SRC_LAYER)),
        hidden(o->Plain("hidden", DNNL_ARG_SRC_ITER)),
        weights(o->Weights("weights", DNNL_ARG_WEIGHTS_LAYER)),
        recurrence(o->Weights("recurrence", DNNL_ARG_WEIGHTS_ITER)),
        bias(o->Plain("bias", DNNL_ARG_BIAS)),
        dst(o->Plain("dst", DNNL_ARG_DST_LAYER)),
        last_hidden(o->Plain("last_hidden", DNNL_ARG_DST_ITER)) {}

  memory::desc src, hidden, weights, recurrence, bias, dst, last_hidden;
};

void BuildLstm(StepBuilder* b) {
  Operands o(b);
  Layer l(&o);
  memory::desc cell = o.Plain("cell", DNNL_ARG_SRC_ITER_C);
  memory::desc peepholes = o.Plain("peepholes", DNNL_ARG_WEIGHTS_PEEPHOLE);
  memory::desc last_cell = o.Plain("last_cell", DNNL_ARG_DST_ITER_C);
  b->Add<dnnl::lstm_forward>(o.bindings(), Direction(*b), l.src, l.hidden, cell, l.weights,
                             l.recurrence, peepholes, l.bias, l.dst, l.last_hidden, last_cell);
}

// A layer of cells without a cell state; `first` is what stands before the descriptors.
template <typename Primitive, typename... First>
void BuildPlainState(StepBuilder* b, First... first) {
  Operands o(b);
  Layer l(&o);
  b->Add<Primitive>(o.bindings(), first..., Direction(*b), l.src, l.hidden, l.weights, l.recurrence,
                    l.bias, l.dst, l.last_hidden);
}

}  // namespace

void BuildRecurrent(StepBuilder* b) {
  const Dims& src = b->Get("src").dims;
  if (src[0] == 0 || src[1] == 0) return BuildOverNothing(b);
  if (recurrence::Takes(*b) && !b->Refuses(recurrence::kName)) return recurrence::Build(b);
  const std::string& cell = b->Text("cell");
  if (cell == "lstm") return BuildLstm(b);
  if (cell == "gru") return BuildPlainState<dnnl::gru_forward>(b);
  if (cell == "gru_linear") return BuildPlainState<dnnl::lbr_gru_forward>(b);
  BuildPlainState<dnnl::vanilla_rnn_forward>(
      b, cell == "relu" ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_tanh);
}

void BuildRecurrentTraining(StepBuilder* b) { recurrent_training::BuildForward(b); }

void BuildRecurrentBackward(StepBuilder* b) { recurrent_training::BuildBackward(b); }

}  // namespace mxplan
