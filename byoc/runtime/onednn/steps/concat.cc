// Concatenation.  A piece that already stands in its place in dst (an alias the memory planner
// made) is not copied; if all do, the step does nothing.  A piece that stands in another piece's
// place (it was sliced out of that one) is copied from there.
#include "base/error.h"
#include "onednn/joined_rows/joined_rows.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

struct Piece {
  int value;
  Dims begin;  // in dst
};

std::vector<Piece> Pieces(const StepBuilder& b, int64_t axis) {
  const Dims& dst = b.Get("dst").dims;
  if (axis < 0 || axis >= static_cast<int64_t>(dst.size())) {
    ThrowInvalidInput("axis ", axis, " of a tensor of rank ", dst.size());
  }
  std::vector<Piece> pieces;
  Dims begin(dst.size(), 0);
  for (const Operand& operand : b.step().operands) {
    if (operand.role != "src") continue;
    const Dims& dims = b.Get(operand.value).dims;
    for (size_t i = 0; i < dst.size(); ++i) {
      if (dims.size() != dst.size() || (static_cast<int64_t>(i) != axis && dims[i] != dst[i])) {
        ThrowInvalidInput("piece ", pieces.size(), " does not fit dst");
      }
    }
    pieces.push_back({operand.value, begin});
    begin[axis] += dims[axis];
  }
  if (pieces.empty() || begin[axis] != dst[axis]) {
    ThrowInvalidInput(pieces.size(), " pieces give ", begin[axis], " of ", dst[axis]);
  }
  return pieces;
}

dnnl::memory::desc Window(const StepBuilder& b, const Piece& piece) {
  return b.Desc("dst").submemory_desc(b.Get(piece.value).dims, piece.begin);
}

bool SharesBytes(const StepBuilder& b, const Piece& piece) {
  return b.Get(piece.value).root == b.Get("dst").root;
}

// First byte, in the value that owns them, of where dst wants the piece.
int64_t WantedOffset(const StepBuilder& b, const dnnl::memory::desc& window) {
  size_t bytes = dnnl::memory::data_type_size(window.get_data_type());
  return b.Get("dst").offset + window.get_submemory_offset() * static_cast<int64_t>(bytes);
}

bool StandsInPlace(const StepBuilder& b, const Piece& piece) {
  if (!SharesBytes(b, piece)) return false;
  const ResolvedValue& src = b.Get(piece.value);
  dnnl::memory::desc window = Window(b, piece);
  return src.offset == WantedOffset(b, window) && SamePlacement(b.Desc(piece.value), window);
}

// Throws if the piece, which is copied, stands where a copy is written.
void CheckSurvivesCopies(const StepBuilder& b, const Piece& piece,
                         const std::vector<Piece>& copied) {
  const ResolvedValue& src = b.Get(piece.value);
  for (const Piece& other : copied) {
    dnnl::memory::desc window = Window(b, other);
    int64_t begin = WantedOffset(b, window);
    int64_t end = begin + static_cast<int64_t>(window.get_size());
    if (src.offset < end && begin < src.offset + src.Bytes()) {
      ThrowInvalidInput("a piece shares dst's bytes but does not stand where dst wants it (byte ",
                        src.offset, ", expected ", WantedOffset(b, Window(b, piece)),
                        ", or another layout)");
    }
  }
}

}  // namespace

void BuildConcat(StepBuilder* b) {
  int64_t axis = b->Integer("axis");
  std::vector<Piece> pieces = Pieces(*b, axis);
  std::vector<Piece> copied;
  for (const Piece& piece : pieces) {
    b->Fixed(piece.value);
    if (SharesBytes(*b, piece)) b->Fixed("dst");
    if (!StandsInPlace(*b, piece)) copied.push_back(piece);
  }
  for (const Piece& piece : copied) {
    if (SharesBytes(*b, piece)) CheckSurvivesCopies(*b, piece, copied);
  }
  if (copied.size() < pieces.size()) {
    if (!b->step().post_ops.empty()) ThrowUnsupported("post-ops on a concat in place");
    for (const Piece& piece : copied) {
      b->AddReorder(piece.value, b->Desc(piece.value), b->Id("dst"), Window(*b, piece));
    }
    return;
  }
  std::vector<int> values;
  for (const Piece& piece : pieces) values.push_back(piece.value);
  if (joined_rows::Build(b, axis, values)) return;
  std::vector<dnnl::memory::desc> descs;
  std::vector<StepBuilder::Binding> bindings = {{DNNL_ARG_DST, b->Id("dst")}};
  for (size_t i = 0; i < pieces.size(); ++i) {
    descs.push_back(b->Fixed(pieces[i].value));
    bindings.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), pieces[i].value});
  }
  // Both constructors exist: with dst's layout given, and with oneDNN choosing it.
  if (b->Get("dst").IsAny()) {
    b->Add<dnnl::concat>(bindings, static_cast<int>(axis), descs);
  } else {
    b->Add<dnnl::concat>(bindings, b->Desc("dst"), static_cast<int>(axis), descs);
  }
}

}  // namespace mxplan
