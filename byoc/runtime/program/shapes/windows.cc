// Shapes of steps whose windows pass over an image: convolutions of both directions, pooling.
//
// No extent is above 2^31 - 1 and neither is an attribute, so sums and products of two stay within
// 64 bits.
#include <algorithm>

#include "base/error.h"
#include "base/integers.h"
#include "program/shapes/expectations.h"
#include "program/shapes/step_shapes.h"
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

// Geometry of a convolution of either direction, without the leading axis of groups.
struct Filters {
  size_t axes = 0;
  int64_t groups = 1, outputs = 0, inputs = 0;  // of one group
  Dims kernel, strides, dilation, begin, end;
};

// `role` is that of the weights, or of their gradient; `image` that of what is not src.
Filters ReadFilters(const StepView& s, const char* role = "weights", const char* image = "dst") {
  ExpectRank(s, "src", 3, 5);
  Filters f;
  f.axes = s.Shape("src").size() - 2;
  f.groups = IntegerOf(s.step(), "groups");
  if (f.groups < 1 || f.groups > INT32_MAX) {
    ThrowInvalidInput("attribute groups: expected at least 1, got ", f.groups);
  }
  const size_t lead = f.groups == 1 ? 2 : 3;
  const Dims& weights = s.Shape(role);
  ExpectRank(s, role, f.axes + lead, f.axes + lead);
  ExpectRank(s, image, f.axes + 2, f.axes + 2);
  if (f.groups > 1 && weights[0] != f.groups) {
    ThrowInvalidInput(role, ": expected ", f.groups, " groups, got shape ", ToString(weights));
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
    if (extent < 1) ThrowInvalidInput(role, ": no filter in shape ", ToString(weights));
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

}  // namespace

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

void CheckConvolutionBackwardWeights(const StepView& s) {
  const Filters f = ReadFilters(s, "dst", "gradient");
  LimitPadded(s, s.Shape("src"), f.begin, f.end, ReachOf(f));
  ExpectShape(s, "gradient", ResultOf(s, f));
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

// The end padding is not stored: every window has to begin before src and the begin padding end.
static void CheckPool(const StepView& s, const char* result) {
  ExpectRank(s, "src", 3, 5);
  const Dims &src = s.Shape("src"), &dst = s.Shape(result);
  ExpectRank(s, result, src.size(), src.size());
  const size_t axes = src.size() - 2;
  const Dims& kernel = IntegersOf(s.step(), "kernel", axes, 1);
  const Dims& strides = IntegersOf(s.step(), "strides", axes, 1);
  const Dims& dilation = IntegersOf(s.step(), "dilation", axes, 1);
  const Dims& begin = IntegersOf(s.step(), "padding", axes, 0);
  for (size_t i = 0; i < 2; ++i) {
    if (dst[i] != src[i]) {
      ThrowInvalidInput(result, ": expected ", src[i], " on axis ", i, ", got shape ",
                        ToString(dst));
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
      ThrowInvalidInput(result, ": expected ", least, " to ", most, " windows on axis ", i + 2,
                        ", got shape ", ToString(dst));
    }
  }
  LimitPadded(s, src, begin, ends, reaches);
}

void CheckPooling(const StepView& s) { CheckPool(s, "dst"); }

void CheckPoolingBackward(const StepView& s) {
  CheckPool(s, "gradient");
  ExpectShape(s, "dst", s.Shape("src"));
}

}  // namespace mxplan
