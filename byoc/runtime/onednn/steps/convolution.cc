// Convolution, deconvolution (transposed convolution), and the gradient of their weights.
//
// A region program counts dilation from 1 (dense) and stores both paddings; oneDNN counts from 0,
// and for a deconvolution the end padding is what makes dst's shape come out.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "onednn/depthwise/depthwise.h"
#include "onednn/few_outputs/few_outputs.h"
#include "onednn/grouped/grouped.h"
#include "onednn/integers/integers.h"
#include "onednn/row_product/row_product.h"
#include "onednn/steps/builders.h"
#include "onednn/tiles/tiles.h"
#include "onednn/windows/windows.h"
#include "onednn/winograd/winograd.h"

namespace mxplan {
namespace {

using dnnl::memory;

struct Geometry {
  Dims strides, dilates, padding_l, padding_r;
};

// Reads the attributes both kinds share, and holds the weights against src and dst.
Geometry ReadGeometry(const StepBuilder& b, bool transposed) {
  const Dims& src = b.Get("src").dims;
  const Dims& weights = b.Get("weights").dims;
  const Dims& dst = b.Get("dst").dims;
  if (src.size() < 3 || src.size() > 5) ThrowUnsupported("rank ", src.size());
  size_t axes = src.size() - 2;
  int64_t groups = b.Integer("groups");
  size_t lead = groups == 1 ? 2 : 3;
  if (dst.size() != src.size() || weights.size() != axes + lead) {
    ThrowInvalidInput("src has rank ", src.size(), ", weights ", weights.size(), ", dst ",
                      dst.size(), " with ", groups, " groups");
  }
  if (groups < 1 || (groups > 1 && weights[0] != groups)) {
    ThrowInvalidInput(groups, " groups, but the weights have ", weights[0]);
  }
  Geometry g;
  g.strides = b.Integers("strides", axes, 1);
  g.dilates = b.Integers("dilation", axes, 1);
  const Dims& padding = b.Integers("padding", 2 * axes, 0);
  g.padding_l.assign(padding.begin(), padding.begin() + axes);
  g.padding_r.assign(padding.begin() + axes, padding.end());
  for (size_t i = 0; i < axes; ++i) {
    int64_t reach = (weights[lead + i] - 1) * g.dilates[i] + 1;
    if (transposed) {
      g.padding_r[i] = (src[i + 2] - 1) * g.strides[i] - dst[i + 2] + reach - g.padding_l[i];
    }
    g.dilates[i] -= 1;
  }
  return g;
}

// The operand of a depthwise post-op: the result of the convolution before it, which has dst's
// channels.
Dims BeforeDepthwise(const StepBuilder& b, const Geometry& g) {
  Dims dims = b.Get("dst").dims;
  const Dims& src = b.Get("src").dims;
  const Dims& weights = b.Get("weights").dims;
  size_t axes = g.strides.size();
  for (size_t i = 0; i < axes; ++i) {
    int64_t reach = (weights[weights.size() - axes + i] - 1) * (g.dilates[i] + 1) + 1;
    dims[i + 2] = (src[i + 2] + g.padding_l[i] + g.padding_r[i] - reach) / g.strides[i] + 1;
  }
  return dims;
}

template <typename Primitive>
void Build(StepBuilder* b, dnnl::algorithm algorithm, bool transposed, bool with_bias = true) {
  Geometry g = ReadGeometry(*b, transposed);
  std::vector<StepBuilder::Binding> bindings = {{DNNL_ARG_SRC, b->Id("src")},
                                                {DNNL_ARG_WEIGHTS, b->Id("weights"), {}, {}, true},
                                                {DNNL_ARG_DST, b->Id("dst")}};
  dnnl::memory::desc bias;
  if (b->Has("bias") && with_bias) {
    bias = b->Fixed("bias");
    bindings.push_back({DNNL_ARG_BIAS, b->Id("bias")});
  }
  dnnl::memory::desc src = b->Desc("src"), dst = b->Desc("dst");
  if (b->HasPostOp(PostOp::Kind::kDepthwise)) {
    if (transposed) ThrowUnsupported("a depthwise post-op behind a deconvolution");
    dst = b->Desc(BeforeDepthwise(*b, g), "dst");
    bindings.push_back({DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_WEIGHTS, b->Id("depthwise_weights")});
    if (b->Has("depthwise_bias")) {
      bindings.push_back({DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_BIAS, b->Id("depthwise_bias")});
    }
  }
  AgreeOnNames(&src, &dst);
  b->ScaleWeightsAlong(b->Integer("groups") == 1 ? 1 : 3);
  b->Add<Primitive>(bindings, algorithm, src, b->AnyWeights("weights"), bias, dst, g.strides,
                    g.dilates, g.padding_l, g.padding_r);
}

// A line seen as an image of one row: a tensor [N, C, W], or what is broadcast to one, as [N, C, 1,
// W].
memory::desc AsImage(const memory::desc& line) {
  Dims dims = line.get_dims();
  dims.insert(dims.begin() + 2, 1);
  return line.reshape(dims);
}

// True for a convolution of each channel of lines by itself, for which oneDNN 3.2 has a product for
// each channel alone; its kernels for channels by themselves take images.
bool IsDepthwiseOnLines(StepBuilder* b) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const int64_t groups = b->Integer("groups");
  if (src.size() != 3 || groups == 1 || src[1] != groups || dst[1] != groups) return false;
  if (b->Get("src").IsAny() || b->Get("dst").IsAny() || !b->IsConstant("weights")) return false;
  return !b->Has("weights_scale") && !b->HasPostOp(PostOp::Kind::kDepthwise) &&
         TagOf(b->Desc("src")) != "abc" && TagOf(b->Desc("src")) == TagOf(b->Desc("dst"));
}

void BuildDepthwiseOnLines(StepBuilder* b) {
  Geometry g = ReadGeometry(*b, false);
  auto widened = [](Dims* dims, int64_t first) { dims->insert(dims->begin(), first); };
  widened(&g.strides, 1);
  for (Dims* zeros : {&g.dilates, &g.padding_l, &g.padding_r}) widened(zeros, 0);
  const memory::desc line = b->Desc("weights");
  Dims filters = line.get_dims();
  filters.insert(filters.end() - 1, 1);
  const memory::desc weights = MakeDesc(filters, line.get_data_type(), "abcde");
  const memory::desc src = AsImage(b->Desc("src")), dst = AsImage(b->Desc("dst"));
  std::vector<StepBuilder::Binding> bindings = {{DNNL_ARG_SRC, b->Id("src"), src},
                                                {DNNL_ARG_WEIGHTS, b->Id("weights"), weights, line},
                                                {DNNL_ARG_DST, b->Id("dst"), dst}};
  memory::desc bias;
  if (b->Has("bias")) {
    bias = b->Fixed("bias");
    bindings.push_back({DNNL_ARG_BIAS, b->Id("bias")});
  }
  b->ShowPostOps(AsImage);
  b->Add<dnnl::convolution_forward>(bindings, dnnl::algorithm::convolution_direct, src,
                                    MakeDesc(filters, line.get_data_type(), "any"), bias, dst,
                                    g.strides, g.dilates, g.padding_l, g.padding_r);
}

bool IsOne(const Dims& dims, size_t from) {
  return std::all_of(dims.begin() + static_cast<std::ptrdiff_t>(from), dims.end(),
                     [](int64_t extent) { return extent == 1; });
}

// True for a 1x1 convolution of one pixel, as behind a global pool, that a row product takes.
bool IsOnePixel(StepBuilder* b) {
  const Dims& padding = b->Integers("padding");
  if (b->Integer("groups") != 1 || !b->IsConstant("weights")) return false;
  if (std::any_of(padding.begin(), padding.end(), [](int64_t extent) { return extent != 0; })) {
    return false;
  }
  for (const char* role : {"src", "weights", "dst"}) {
    if (!IsOne(b->Get(role).dims, 2)) return false;
  }
  return TakesRowProduct(*b) && !b->Refuses(kRowProduct);
}

void BuildOnePixel(StepBuilder* b) {
  b->Fixed("src");
  b->Fixed("dst");
  dnnl::memory::desc weights = b->Desc("weights");
  const Dims dims = weights.get_dims();
  BuildRowProduct(b, MakeDesc(dims, weights.get_data_type(), PlainTag(dims.size())), dims[0]);
}

// The rules of the kind have held the shapes against it.
Geometry ReadGeometryOfGradient(const StepBuilder& b, size_t axes) {
  Geometry g;
  g.strides = b.Integers("strides", axes, 1);
  g.dilates = b.Integers("dilation", axes, 1);
  for (int64_t& dilation : g.dilates) dilation -= 1;
  const Dims& padding = b.Integers("padding", 2 * axes, 0);
  g.padding_l.assign(padding.begin(), padding.begin() + static_cast<std::ptrdiff_t>(axes));
  g.padding_r.assign(padding.begin() + static_cast<std::ptrdiff_t>(axes), padding.end());
  return g;
}

// Builds the step by Winograd's algorithm; false if it asks for the direct sum, or has to take it.
bool BuildWinograd(StepBuilder* b) {
  const std::string& algorithm = b->Text("algorithm");
  if (algorithm == "direct") return false;
  if (algorithm != "winograd_f2" && algorithm != "winograd_f4") {
    ThrowUnsupported("convolution algorithm ", algorithm, " is not known");
  }
  if (b->Refuses(algorithm)) {
    b->StateMissing(algorithm);
    return false;
  }
  winograd::Build(b, algorithm == "winograd_f4" ? 4 : 2);
  return true;
}

// Builds the step by the first kernel of our own for few output channels that is not refused.
bool BuildFewOutputs(StepBuilder* b, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (b->Refuses(name)) continue;
    few_outputs::Build(b, name);
    return true;
  }
  return false;
}

}  // namespace

void BuildConvolutionBackwardWeights(StepBuilder* b) {
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  Geometry g = ReadGeometryOfGradient(*b, b->Rank("src") - 2);
  dnnl::memory::desc src = b->Desc("src"), gradient = b->Desc("gradient");
  AgreeOnNames(&src, &gradient);
  dnnl::memory::desc weights = b->AnyWeights("dst"), bias;
  b->AddBackward<dnnl::convolution_backward_weights>(
      {{DNNL_ARG_SRC, b->Id("src")},
       {DNNL_ARG_DIFF_DST, b->Id("gradient")},
       {DNNL_ARG_DIFF_WEIGHTS, b->Id("dst"), {}, {}, true}},
      StepBuilder::HintOf<dnnl::convolution_forward>(
          kDirect, src, weights, bias, gradient, g.strides, g.dilates, g.padding_l, g.padding_r),
      kDirect, src, weights, bias, gradient, g.strides, g.dilates, g.padding_l, g.padding_r);
}

void BuildConvolution(StepBuilder* b) {
  std::string algorithm = b->Text("algorithm"), preferred = b->Text("preferred");
  if (algorithm != "direct" && !preferred.empty()) {
    ThrowInvalidInput("implementation ", preferred, " is none of algorithm ", algorithm);
  }
  if (BuildWinograd(b)) return;
  if ((preferred.empty() || preferred == kRowProduct) && IsOnePixel(b)) return BuildOnePixel(b);
  const std::vector<std::string> narrow = grouped::NamesFor(b), integers = integers::NamesFor(b);
  const std::vector<std::string> few = windows::NamesFor(b), single = depthwise::NamesFor(b);
  const std::vector<std::string> tiles = tiles::NamesFor(b), narrow_dst = few_outputs::NamesFor(b);
  auto wants = [&](const std::vector<std::string>& own) {
    return std::find(own.begin(), own.end(), preferred) != own.end() && !b->Refuses(preferred);
  };
  if (wants(narrow)) return grouped::Build(b, preferred);
  if (wants(integers)) return integers::Build(b, preferred);
  if (preferred.empty() && integers::IsFirst(b, integers)) {
    return integers::Build(b, integers.front());
  }
  const bool first = preferred.empty() && !single.empty() && !b->Refuses(single.front());
  if (first || wants(single)) return depthwise::Build(b, single.front());
  if (preferred.empty() && BuildFewOutputs(b, narrow_dst)) return;
  if (wants(narrow_dst)) return few_outputs::Build(b, preferred);
  if (wants(few)) return windows::Build(b, preferred);
  if (wants(tiles)) return tiles::Build(b, preferred);
  b->Prefer(preferred);
  for (const auto* own : {&narrow, &integers, &few, &single, &tiles, &narrow_dst}) {
    for (const std::string& name : *own) b->OfferAlternative(name);
  }
  if (IsDepthwiseOnLines(b)) return BuildDepthwiseOnLines(b);
  Build<dnnl::convolution_forward>(b, dnnl::algorithm::convolution_direct, false);
}

void BuildDeconvolution(StepBuilder* b) {
  if (BuildWinograd(b) || BuildFewOutputs(b, few_outputs::NamesFor(b))) return;
  constexpr auto kDirect = dnnl::algorithm::deconvolution_direct;
  auto bare = [&] { Build<dnnl::deconvolution_forward>(b, kDirect, true, false); };
  if (!b->BuildEpilogueApart(bare)) Build<dnnl::deconvolution_forward>(b, kDirect, true);
}

}  // namespace mxplan
