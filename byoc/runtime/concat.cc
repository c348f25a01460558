// Concatenation.  A piece that already stands in dst's bytes (an alias the memory planner made) is
// not copied; if all do, the step does nothing.
#include "builders.h"
#include "error.h"

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

// Throws unless the piece's bytes are where dst wants them.
void CheckInPlace(const StepBuilder& b, const Piece& piece) {
  const ResolvedValue& src = b.Get(piece.value);
  const ResolvedValue& dst = b.Get("dst");
  dnnl::memory::desc window = dst.desc.submemory_desc(src.dims, piece.begin);
  int64_t bytes = static_cast<int64_t>(dnnl::memory::data_type_size(dst.desc.get_data_type()));
  int64_t expected = dst.offset + window.get_submemory_offset() * bytes;
  if (src.offset != expected || !SamePlacement(src.desc, window)) {
    ThrowInternal("a piece shares dst's bytes but does not stand where dst wants it (byte ",
                  src.offset, ", expected ", expected, ", or another layout)");
  }
}

}  // namespace

void BuildConcat(StepBuilder* b) {
  int64_t axis = b->Integer("axis");
  std::vector<Piece> pieces = Pieces(*b, axis);
  std::vector<Piece> copied;
  for (const Piece& piece : pieces) {
    bool alias = b->Get(piece.value).root == b->Get("dst").root;
    if (alias) {
      b->Fixed("dst");
      b->Fixed(piece.value);
      CheckInPlace(*b, piece);
    } else {
      copied.push_back(piece);
    }
  }
  if (copied.size() < pieces.size()) {
    if (!b->step().post_ops.empty()) ThrowUnsupported("post-ops on a concat in place");
    for (const Piece& piece : copied) {
      dnnl::memory::desc src = b->Fixed(piece.value);
      b->AddReorder(piece.value, src, b->Id("dst"),
                    b->Desc("dst").submemory_desc(src.get_dims(), piece.begin));
    }
    return;
  }
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
