// Shapes of operands, kind by kind; see step_shapes.h.
//
// No extent is above 2^31 - 1 and neither is an attribute, so sums and products of two stay within
// 64 bits.
#include "program/step_shapes.h"

#include <algorithm>

#include "base/error.h"
#include "base/integers.h"
#include "program/step_attributes.h"

namespace mxplan {
namespace {

// Extent of what `kernel` points reach with `dilation`.
int64_t Reach(int64_t kernel, int64_t dilation) { return (kernel - 1) * dilation + 1; }

// Number of windows that fit into `padded` points; none where not one does.
int64_t Windows(int64_t padded, int64_t reach, int64_t stride) {
  return std::max<int64_t>(FloorDiv(padded - reach, stride) + 1, 0);
}

// "2^31 - 1" for a number of so many bits, or its digits.
std::string BoundText(int64_t bound) {
  auto next = static_cast<uint64_t>(bound) + 1;
  if ((next & (next - 1)) != 0) return std::to_string(bound);
  return Concat("2^", __builtin_ctzll(next), " - 1");
}

void LimitPadded(const StepView& s, const Dims& shape, const Dims& begin, const Dims& end,
                 const Dims& reach) {
  const int64_t most = s.limits().image_bytes;
  const auto image = static_cast<size_t>(s.step().Find("src"));
  int64_t bytes = s.resolved().values[image].layout.element_bytes;
  auto times = [&](int64_t extent) {
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes) || bytes > most) {
      ThrowUnsupported("an image of ", ToString(shape), " with padding ", ToString(begin), " and ",
                       ToString(end), " under windows of ", ToString(reach), ": expected at most ",
                       BoundText(most), " bytes");
    }
  };
  times(shape[1]);
  for (size_t i = 0; i < begin.size(); ++i) {
    times(std::max(shape[i + 2] + begin[i] + std::max<int64_t>(end[i], 0), reach[i]));
  }
}

int64_t AxisOf(const StepView& s, const Dims& shape) {
  int64_t axis = IntegerOf(s.step(), "axis");
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
    ThrowInvalidInput("attribute axis: expected one of a tensor of rank ", shape.size(), ", got ",
                      axis);
  }
  return axis;
}

void ExpectRank(const StepView& s, const char* role, size_t least, size_t most) {
  size_t rank = s.Shape(role).size();
  if (rank < least || rank > most) {
    ThrowInvalidInput(role, ": expected rank ", least, " to ", most, ", got shape ",
                      ToString(s.Shape(role)));
  }
}

// Geometry of a convolution of either direction, without the leading axis of groups.
struct Filters {
  size_t axes = 0;
  int64_t groups = 1, outputs = 0, inputs = 0;  // of one group
  Dims kernel, strides, dilation, begin, end;
};

Filters ReadFilters(const StepView& s) {
  ExpectRank(s, "src", 3, 5);
  Filters f;
  f.axes = s.Shape("src").size() - 2;
  f.groups = IntegerOf(s.step(), "groups");
  if (f.groups < 1 || f.groups > INT32_MAX) {
    ThrowInvalidInput("attribute groups: expected at least 1, got ", f.groups);
  }
  const size_t lead = f.groups == 1 ? 2 : 3;
  const Dims& weights = s.Shape("weights");
  ExpectRank(s, "weights", f.axes + lead, f.axes + lead);
  ExpectRank(s, "dst", f.axes + 2, f.axes + 2);
  if (f.groups > 1 && weights[0] != f.groups) {
    ThrowInvalidInput("weights: expected ", f.groups, " groups, got shape ", ToString(weights));
  }
  f.outputs = weights[lead - 2];
  f.inputs = weights[lead - 1];
  f.kernel.assign(weights.end() - static_cast<std::ptrdiff_t>(f.axes), weights.end());
  f.strides = IntegersOf(s.step(), "strides", f.axes, 1);
  f.dilation = IntegersOf(s.step(), "dilation", f.axes, 1);
  const Dims& padding = IntegersOf(s.step(), "padding", 2 * f.axes, 0);
  f.begin.assign(padding.begin(), padding.begin() + static_cast<std::ptrdiff_t>(f.axes));
  f.end.assign(padding.begin() + static_cast<std::ptrdiff_t>(f.axes), padding.end());
  for (int64_t extent : f.kernel) {
    if (extent < 1) ThrowInvalidInput("weights: no filter in shape ", ToString(weights));
  }
  const Dims& src = s.Shape("src");
  if (src[1] != f.inputs * f.groups) {
    ThrowInvalidInput("src: expected ", f.inputs * f.groups, " channels, got shape ",
                      ToString(src));
  }
  if (s.Has("bias")) ExpectShape(s, "bias", {f.outputs * f.groups});
  return f;
}

const PostOp* DepthwiseOf(const Step& step) {
  for (const PostOp& op : step.post_ops) {
    if (op.kind == PostOp::Kind::kDepthwise) return &op;
  }
  return nullptr;
}

Dims ReachOf(const Filters& f) {
  Dims reach;
  for (size_t i = 0; i < f.axes; ++i) reach.push_back(Reach(f.kernel[i], f.dilation[i]));
  return reach;
}

Dims ResultOf(const StepView& s, const Filters& f) {
  const Dims& src = s.Shape("src");
  Dims result = {src[0], f.outputs * f.groups};
  for (size_t i = 0; i < f.axes; ++i) {
    result.push_back(Windows(src[i + 2] + f.begin[i] + f.end[i], Reach(f.kernel[i], f.dilation[i]),
                             f.strides[i]));
  }
  return result;
}

// The depthwise post-op of a convolution whose own result has the shape `between`.
void CheckDepthwise(const StepView& s, const PostOp& op, const Dims& between) {
  if (between.size() != 4) ThrowInvalidInput("post-op depthwise: expected images");
  ExpectShape(s, "depthwise_weights", {between[1], 1, 1, op.kernel, op.kernel});
  if (s.Has("depthwise_bias")) ExpectShape(s, "depthwise_bias", {between[1]});
  Dims result = between;
  for (size_t i = 2; i < 4; ++i) {
    result[i] = Windows(between[i] + 2 * op.padding, op.kernel, op.stride);
  }
  ExpectShape(s, "dst", result);
}

// `inner` as a box inside `outer`, each role given, from the attribute begin on.
void CheckBox(const StepView& s, const char* outer_role, const char* inner_role) {
  const Dims &outer = s.Shape(outer_role), &inner = s.Shape(inner_role);
  const Dims& begin = IntegersOf(s.step(), "begin", outer.size(), 0);
  ExpectRank(s, inner_role, outer.size(), outer.size());
  for (size_t i = 0; i < outer.size(); ++i) {
    if (begin[i] + inner[i] > outer[i]) {
      ThrowInvalidInput(inner_role, ": the box leaves the larger tensor on axis ", i,
                        ": expected at most ", outer[i], ", got ", begin[i], " + ", inner[i]);
    }
  }
}

}  // namespace

const Dims& StepView::Shape(const char* role) const {
  int id = step_.Find(role);
  if (id < 0) ThrowInvalidInput("no operand in role ", role);
  return ShapeOf(id);
}

std::string ToString(const Dims& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += Concat(i ? ", " : "", shape[i]);
  return text + ")";
}

void ExpectShape(const StepView& s, const char* role, const Dims& expected) {
  const Dims& shape = s.Shape(role);
  if (shape != expected) {
    ThrowInvalidInput(role, ": expected shape ", ToString(expected), ", got ", ToString(shape));
  }
}

void ExpectBroadcast(const std::string& what, const Dims& shape, const Dims& to) {
  bool fits = shape.size() == to.size();
  for (size_t i = 0; fits && i < to.size(); ++i) fits = shape[i] == to[i] || shape[i] == 1;
  if (!fits) {
    ThrowInvalidInput(what, ": expected a shape that is broadcast to ", ToString(to), ", got ",
                      ToString(shape));
  }
}

Dims BeforeDepthwise(const StepView& s) {
  if (s.step().kind != "convolution" || !DepthwiseOf(s.step())) return s.Shape("dst");
  return ResultOf(s, ReadFilters(s));
}

void CheckConvolution(const StepView& s) {
  const Filters f = ReadFilters(s);
  const Dims result = ResultOf(s, f);
  LimitPadded(s, s.Shape("src"), f.begin, f.end, ReachOf(f));
  if (const PostOp* op = DepthwiseOf(s.step())) return CheckDepthwise(s, *op, result);
  ExpectShape(s, "dst", result);
}

// The padding at the end is what makes dst's extents come out; beyond it, at most a stride or a
// dilation less one may be added.
void CheckDeconvolution(const StepView& s) {
  const Filters f = ReadFilters(s);
  const Dims &src = s.Shape("src"), &dst = s.Shape("dst");
  Dims least = {src[0], f.outputs * f.groups};
  for (size_t i = 0; i < f.axes; ++i) {
    int64_t whole = (src[i + 2] - 1) * f.strides[i] + Reach(f.kernel[i], f.dilation[i]);
    least.push_back(std::max<int64_t>(whole - f.begin[i] - f.end[i], 0));
  }
  for (size_t i = 0; i < dst.size(); ++i) {
    int64_t more = i < 2 ? 0 : std::max(f.strides[i - 2], f.dilation[i - 2]) - 1;
    if (dst[i] < least[i] || dst[i] > least[i] + more) {
      ThrowInvalidInput("dst: expected ", least[i], " to ", least[i] + more, " on axis ", i,
                        ", got shape ", ToString(dst));
    }
  }
  LimitPadded(s, dst, f.begin, f.end, ReachOf(f));
}

void CheckMatMul(const StepView& s) {
  const Dims &src = s.Shape("src"), &weights = s.Shape("weights"), &dst = s.Shape("dst");
  const size_t rank = dst.size();
  ExpectRank(s, "dst", 2, 12);
  ExpectRank(s, "src", rank, rank);
  ExpectRank(s, "weights", rank, rank);
  const int64_t depth = src[rank - 1];
  Dims rows = dst, columns = dst;
  rows[rank - 1] = depth;
  columns[rank - 2] = depth;
  if (weights[rank - 2] != depth || src[rank - 2] != dst[rank - 2] ||
      weights[rank - 1] != dst[rank - 1]) {
    ThrowInvalidInput("weights: expected a product of [M, K] and [K, N] to [M, N], got shapes ",
                      ToString(src), ", ", ToString(weights), " and ", ToString(dst));
  }
  ExpectBroadcast("src", src, rows);
  ExpectBroadcast("weights", weights, columns);
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (src[i] != dst[i] && weights[i] != dst[i]) {
      ThrowInvalidInput("dst: expected ", std::max(src[i], weights[i]), " on axis ", i,
                        ", got shape ", ToString(dst));
    }
  }
  if (s.Has("bias")) ExpectBroadcast("bias", s.Shape("bias"), dst);
}

void CheckInnerProduct(const StepView& s) {
  ExpectRank(s, "src", 2, 12);
  const Dims &src = s.Shape("src"), &weights = s.Shape("weights");
  ExpectRank(s, "weights", src.size(), src.size());
  Dims filters = src;
  filters[0] = weights[0];
  ExpectShape(s, "weights", filters);
  ExpectShape(s, "dst", {src[0], weights[0]});
  if (s.Has("bias")) ExpectShape(s, "bias", {weights[0]});
}

// The end padding is not stored: every window has to begin before src and the begin padding end.
void CheckPooling(const StepView& s) {
  ExpectRank(s, "src", 3, 5);
  const Dims &src = s.Shape("src"), &dst = s.Shape("dst");
  ExpectRank(s, "dst", src.size(), src.size());
  const size_t axes = src.size() - 2;
  const Dims& kernel = IntegersOf(s.step(), "kernel", axes, 1);
  const Dims& strides = IntegersOf(s.step(), "strides", axes, 1);
  const Dims& dilation = IntegersOf(s.step(), "dilation", axes, 1);
  const Dims& begin = IntegersOf(s.step(), "padding", axes, 0);
  for (size_t i = 0; i < 2; ++i) {
    if (dst[i] != src[i]) {
      ThrowInvalidInput("dst: expected ", src[i], " on axis ", i, ", got shape ", ToString(dst));
    }
  }
  Dims reaches, ends;
  for (size_t i = 0; i < axes; ++i) {
    int64_t reach = Reach(kernel[i], dilation[i]), extent = src[i + 2] + begin[i];
    reaches.push_back(reach);
    ends.push_back((dst[i + 2] - 1) * strides[i] + reach - extent);
    int64_t least = Windows(extent, reach, strides[i]);
    int64_t most = Windows(extent + reach - 1, reach, strides[i]);
    if (dst[i + 2] < least || dst[i + 2] > most) {
      ThrowInvalidInput("dst: expected ", least, " to ", most, " windows on axis ", i + 2,
                        ", got shape ", ToString(dst));
    }
  }
  LimitPadded(s, src, begin, ends, reaches);
}

void CheckBatchNormalization(const StepView& s) {
  ExpectRank(s, "src", 2, 5);
  const Dims& src = s.Shape("src");
  for (const char* role : {"mean", "variance", "scale", "shift"}) ExpectShape(s, role, {src[1]});
  ExpectShape(s, "dst", src);
}

void CheckLayerNormalization(const StepView& s) {
  ExpectRank(s, "src", 2, 5);
  const Dims& src = s.Shape("src");
  for (const char* role : {"scale", "shift"}) {
    if (s.Has(role)) ExpectShape(s, role, {src.back()});
  }
  ExpectShape(s, "dst", src);
}

void CheckLrn(const StepView& s) {
  ExpectRank(s, "src", 2, 5);
  int64_t size = IntegerOf(s.step(), "size");
  if (size < 1 || size > INT32_MAX) {
    ThrowInvalidInput("attribute size: expected 1 to ", INT32_MAX, ", got ", size);
  }
  CheckSameShape(s);
}

void CheckSoftmax(const StepView& s) {
  AxisOf(s, s.Shape("src"));
  CheckSameShape(s);
}

void CheckSameShape(const StepView& s) { ExpectShape(s, "dst", s.Shape("src")); }

void CheckBinary(const StepView& s) {
  ExpectBroadcast("src", s.Shape("src"), s.Shape("dst"));
  ExpectBroadcast("src1", s.Shape("src1"), s.Shape("dst"));
}

void CheckPRelu(const StepView& s) {
  CheckSameShape(s);
  ExpectBroadcast("weights", s.Shape("weights"), s.Shape("dst"));
}

void CheckReduction(const StepView& s) { ExpectBroadcast("dst", s.Shape("dst"), s.Shape("src")); }

namespace {

struct Gates {
  const char* cell;
  int64_t gates, biases;
};

constexpr Gates kCells[] = {
    {"lstm", 4, 4}, {"gru", 3, 3}, {"gru_linear", 3, 4}, {"tanh", 1, 1}, {"relu", 1, 1}};

Gates GatesOf(const StepView& s) {
  const std::string& cell = TextOf(s.step(), "cell");
  for (const Gates& gates : kCells) {
    if (cell == gates.cell) return gates;
  }
  ThrowInvalidInput("attribute cell: expected lstm, gru, gru_linear, tanh or relu, got ", cell);
}

int64_t DirectionsOf(const StepView& s) {
  const std::string& direction = TextOf(s.step(), "direction");
  if (direction == "forward" || direction == "reverse") return 1;
  if (direction == "both") return 2;
  ThrowInvalidInput("attribute direction: expected forward, reverse or both, got ", direction);
}

}  // namespace

void CheckRecurrent(const StepView& s) {
  const Gates gates = GatesOf(s);
  const int64_t directions = DirectionsOf(s);
  ExpectRank(s, "src", 3, 3);
  ExpectRank(s, "recurrence", 5, 5);
  const Dims& src = s.Shape("src");
  const int64_t units = s.Shape("recurrence")[2];
  if (units < 1 || src[2] < 1) {
    ThrowInvalidInput("expected units and features, got recurrence of shape ",
                      ToString(s.Shape("recurrence")), " and src of shape ", ToString(src));
  }
  ExpectShape(s, "weights", {1, directions, src[2], gates.gates, units});
  ExpectShape(s, "recurrence", {1, directions, units, gates.gates, units});
  ExpectShape(s, "dst", {src[0], src[1], directions * units});
  if (s.Has("bias")) ExpectShape(s, "bias", {1, directions, gates.biases, units});
  const bool lstm = gates.gates == 4;
  for (const char* role : {"peepholes", "cell", "last_cell"}) {
    if (s.Has(role) && !lstm) ThrowInvalidInput(role, ": expected in an LSTM only");
  }
  if (s.Has("peepholes")) ExpectShape(s, "peepholes", {1, directions, 3, units});
  for (const char* role : {"hidden", "cell", "last_hidden", "last_cell"}) {
    if (s.Has(role)) ExpectShape(s, role, {1, directions, src[1], units});
  }
  if (lstm && (s.Has("hidden") != s.Has("cell") || s.Has("last_hidden") != s.Has("last_cell"))) {
    ThrowInvalidInput("hidden and cell, last_hidden and last_cell: expected both or none");
  }
}

void CheckAttention(const StepView& s) {
  const std::string& causal = TextOf(s.step(), "causal");
  if (causal != "no" && causal != "first" && causal != "last") {
    ThrowInvalidInput("attribute causal: expected no, first or last, got ", causal);
  }
  RealOf(s.step(), "scale");
  FlagOf(s.step(), "nan_is_zero");
  for (const char* role : {"src", "key", "value", "dst"}) ExpectRank(s, role, 4, 4);
  const Dims &src = s.Shape("src"), &key = s.Shape("key"), &value = s.Shape("value");
  if (key[1] < 1 || src[1] % key[1] != 0) {
    ThrowInvalidInput("key: expected heads that divide the ", src[1], " of src, got shape ",
                      ToString(key));
  }
  ExpectShape(s, "key", {src[0], key[1], key[2], src[3]});
  ExpectShape(s, "value", {src[0], key[1], key[2], value[3]});
  ExpectShape(s, "dst", {src[0], src[2], src[1], value[3]});
  if (s.Has("mask")) {
    ExpectBroadcast("mask", s.Shape("mask"), {src[0], src[1], src[2], key[2]});
  }
}

void CheckConcat(const StepView& s) {
  const Dims& dst = s.Shape("dst");
  const auto axis = static_cast<size_t>(AxisOf(s, dst));
  int64_t extent = 0;
  size_t pieces = 0;
  for (const Operand& operand : s.step().operands) {
    if (operand.role != "src") continue;
    const Dims& piece = s.ShapeOf(operand.value);
    for (size_t i = 0; i < dst.size(); ++i) {
      if (piece.size() != dst.size() || (i != axis && piece[i] != dst[i])) {
        ThrowInvalidInput("src: piece ", pieces, " does not fit dst: expected ", ToString(dst),
                          " but for axis ", axis, ", got ", ToString(piece));
      }
    }
    extent += piece[axis];
    ++pieces;
  }
  const size_t most = s.limits().pieces;
  if (pieces > most) ThrowInvalidInput("src: expected at most ", most, " pieces, got ", pieces);
  if (extent != dst[axis]) {
    ThrowInvalidInput("src: ", pieces, " pieces give ", extent, " of ", dst[axis], " on axis ",
                      axis);
  }
}

void CheckShuffle(const StepView& s) {
  const Dims& src = s.Shape("src");
  int64_t extent = src[static_cast<size_t>(AxisOf(s, src))];
  int64_t groups = IntegerOf(s.step(), "groups");
  if (groups < 1 || groups > INT32_MAX || extent % groups != 0) {
    ThrowInvalidInput("attribute groups: ", extent, " channels in ", groups, " groups");
  }
  CheckSameShape(s);
}

void CheckResampling(const StepView& s) {
  ExpectRank(s, "src", 3, 5);
  const Dims& src = s.Shape("src");
  Dims expected = s.Shape("dst");
  ExpectRank(s, "dst", src.size(), src.size());
  std::copy(src.begin(), src.begin() + 2, expected.begin());
  ExpectShape(s, "dst", expected);
}

void CheckPad(const StepView& s) { CheckBox(s, "dst", "src"); }

void CheckSlice(const StepView& s) { CheckBox(s, "src", "dst"); }

void CheckStridedSlice(const StepView& s) {
  const Dims &src = s.Shape("src"), &dst = s.Shape("dst");
  ExpectRank(s, "dst", src.size(), src.size());
  const Dims& begin = IntegersOf(s.step(), "begin", src.size(), 0);
  const Dims& steps = IntegersOf(s.step(), "steps", src.size(), -INT32_MAX);
  for (size_t i = 0; i < src.size(); ++i) {
    if (steps[i] == 0)
      ThrowInvalidInput("attribute steps: expected none of 0, got one on axis ", i);
    if (dst[i] == 0) continue;
    const int64_t last = begin[i] + (dst[i] - 1) * steps[i];
    if (begin[i] >= src[i] || last < 0 || last >= src[i]) {
      ThrowInvalidInput("dst: elements ", begin[i], " to ", last, " of axis ", i,
                        ": expected some from 0 to ", src[i] - 1);
    }
  }
}

void CheckGather(const StepView& s) {
  const Dims &src = s.Shape("src"), &indices = s.Shape("indices");
  const auto axis = static_cast<std::ptrdiff_t>(AxisOf(s, src));
  Dims expected(src.begin(), src.begin() + axis);
  expected.insert(expected.end(), indices.begin(), indices.end());
  expected.insert(expected.end(), src.begin() + axis + 1, src.end());
  ExpectShape(s, "dst", expected);
}

void CheckSelect(const StepView& s) {
  for (const char* role : {"condition", "src", "src1"}) {
    ExpectBroadcast(role, s.Shape(role), s.Shape("dst"));
  }
}

}  // namespace mxplan
