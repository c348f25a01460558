// The table of errata; see errata.h.
#include "onednn/primitives/errata.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "base/json.h"
#include "onednn/isa.h"
#include "program/step_text.h"

namespace mxplan {
namespace {

// The largest number but the last one, at least 1.
int64_t LargestOfRows(const Dims& numbers) {
  int64_t largest = 1;
  for (size_t i = 0; i + 1 < numbers.size(); ++i) largest = std::max(largest, numbers[i]);
  return largest;
}

// The most pixels of dst along an axis that no window of a transposed convolution reaches, between
// two or behind the last one; negative where windows overlap.
int64_t LargestGap(const StepDescriptor& step) {
  int64_t largest = INT64_MIN;
  for (size_t i = 0; i < std::min(step.kernel.size(), step.strides.size()); ++i) {
    const size_t axis = 2 + i;
    largest = std::max(largest, step.strides[i] - step.kernel[i]);
    if (axis >= std::min(step.src.size(), step.dst.size()) || i >= step.padding.size()) continue;
    const int64_t dilation = i < step.dilation.size() ? step.dilation[i] : 1;
    const int64_t end = (step.src[axis] - 1) * step.strides[i] - step.padding[i] +
                        (step.kernel[i] - 1) * dilation + 1;
    if (step.kind == "deconvolution") largest = std::max(largest, step.dst[axis] - end);
  }
  return largest;
}

void WriteRange(const char* name, const Range& range, JsonWriter* json) {
  json->Key(name).BeginObject().Key("least").Integer(range.least);
  json->Key("most").Integer(range.most).EndObject();
}

std::string Text(const Version& version) {
  return std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
         std::to_string(version[2]);
}

bool Is(Presence wanted, bool there) {
  return wanted == Presence::kAny || (wanted == Presence::kSome) == there;
}

const char* Text(Presence presence) {
  switch (presence) {
    case Presence::kSome:
      return "some";
    case Presence::kNone:
      return "none";
    default:
      return "any";
  }
}

const char* Text(Order order) {
  switch (order) {
    case Order::kPlain:
      return "plain";
    case Order::kChannelsLast:
      return "channels last";
    case Order::kBlocked:
      return "blocked";
    case Order::kNotPlain:
      return "channels last or blocked";
    default:
      return "any";
  }
}

const char* Text(Remedy remedy) {
  switch (remedy) {
    case Remedy::kEpilogueApart:
      return "epilogue apart";
    case Remedy::kOrderApart:
      return "order apart";
    default:
      return "next implementation";
  }
}

const char* Text(std::optional<PostOp::Kind> kind) {
  if (!kind) return "any";
  switch (*kind) {
    case PostOp::Kind::kEltwise:
      return "eltwise";
    case PostOp::Kind::kBinary:
      return "binary";
    case PostOp::Kind::kSum:
      return "sum";
    default:
      return "depthwise";
  }
}

bool HoldsOrder(Order wanted, const std::string& layout, size_t rank) {
  bool blocked = layout.size() > rank;
  bool plain = layout == PlainTag(rank);
  switch (wanted) {
    case Order::kPlain:
      return plain;
    case Order::kChannelsLast:
      return !plain && !blocked;
    case Order::kBlocked:
      return blocked;
    case Order::kNotPlain:
      return !plain;
    default:
      return true;
  }
}

// An axis, or several that lie together in both tensors.
struct Run {
  int64_t extent, src_stride, dst_stride;
};

// The places of a tensor's elements as runs, in dst's order from the innermost one on.  Layouts are
// without blocks.
std::vector<Run> Runs(const Dims& dims, const std::string& src, const std::string& dst) {
  std::vector<int64_t> src_strides(dims.size());
  int64_t stride = 1;
  for (auto axis = src.rbegin(); axis != src.rend(); ++axis) {
    src_strides.at(static_cast<size_t>(*axis - 'a')) = stride;
    stride *= dims.at(static_cast<size_t>(*axis - 'a'));
  }
  std::vector<Run> runs;
  stride = 1;
  for (auto axis = dst.rbegin(); axis != dst.rend(); ++axis) {
    auto at = static_cast<size_t>(*axis - 'a');
    if (dims[at] == 1) continue;
    if (!runs.empty() && src_strides[at] == runs.back().src_stride * runs.back().extent) {
      runs.back().extent *= dims[at];
    } else {
      runs.push_back({dims[at], src_strides[at], stride});
    }
    stride *= dims[at];
  }
  return runs;
}

// Whether oneDNN may choose to read a conversion's src in its own order.  Its choice also depends
// on the size of the first-level cache and on strides in src; blocks are not looked into.
bool MayReadByRows(const StepDescriptor& step) {
  constexpr int64_t kFew = 16;  // elements in a row, for which it follows dst
  constexpr int64_t kWide = 4;  // elements that it writes at once, where rows of dst hold so many
  const std::string& dst = step.dst_layout;
  std::string src = step.src_layout == "any" ? PlainTag(step.src.size()) : step.src_layout;
  if (src == dst || dst == "any") return false;
  if (src.size() != step.src.size() || dst.size() != step.src.size()) return true;
  std::vector<Run> runs = Runs(step.src, src, dst);
  auto dense =
      std::find_if(runs.begin(), runs.end(), [](const Run& run) { return run.src_stride == 1; });
  if (dense == runs.begin() || dense == runs.end() || dense->dst_stride % kWide == 0) return false;
  return runs.front().extent > kFew || dense != runs.begin() + 1;
}

bool HasZeroPoint(const StepDescriptor& step) {
  return NamesOperand(step.text, "src_zero_point") || NamesOperand(step.text, "dst_zero_point");
}

// Whether there are channels, and they do not fill blocks; true for blocks of 0.
bool IsNoMultiple(const Dims& dims, int64_t block) {
  return block == 0 || (dims.size() > 1 && dims[1] % block != 0);
}

bool HasPostOp(const Condition& wanted, const std::vector<PostOp>& post_ops) {
  std::string algorithm = wanted.post_op_algorithm;
  return !wanted.post_op || std::any_of(post_ops.begin(), post_ops.end(), [&](const PostOp& op) {
    return op.kind == *wanted.post_op && (algorithm.empty() || op.algorithm == algorithm);
  });
}

bool MultipliesBytes(const StepDescriptor& step) {
  std::string type = TypeOfOperand(step.text, "src");
  return (type == "uint8" || type == "int8") && !step.weights.empty();
}

Erratum BytePairs(const char* name, const char* implementation, bool no_vnni = false) {
  return {.name = name,
          .implementation = implementation,
          .condition = {.kind = "", .byte_products = Presence::kSome, .no_vnni = no_vnni},
          .first = {3, 2, 0},
          .last = {3, 999, 999},
          .wrong = "sums of two products of bytes saturate in 16 bits",
          .found_by = "scripts/sweep_kernels"};
}

}  // namespace

const std::vector<Erratum>& Errata() {
  static const std::vector<Erratum> errata = {
      // If filters and rows of a block outgrow the second-level cache, it takes the window row
      // by row, and runs the epilogue on sums that are not complete: rows of one phase of the
      // stride are `row_stride` apart, and it looks for the last one at distance 1.  Bounds by
      // sizes of caches are not for this table.  oneDNN 3.4 takes `row_stride` rows at a time.
      {.name = "deconvolution-epilogue",
       .implementation = "brg_conv:*+brgconv_strided:*",
       .condition = {.kind = "deconvolution",
                     .epilogue = Presence::kSome,
                     .kernel_rows = {.least = 2},
                     .row_stride = {.least = 2}},
       .first = {3, 2, 0},
       .last = {3, 3, 99},
       .wrong =
           "bias and post-ops run on part of the sum where the filters outgrow the second-level "
           "cache; results are off by 30 %",
       .found_by = "networks that generate images; scripts/sweep_kernels",
       .remedy = Remedy::kEpilogueApart},
      // A convolution's data gradient does the work, and oneDNN does what follows it element by
      // element, by what it calls reference code elsewhere: right, but far slower than primitives
      // of their own.  A sum, which cannot stand apart, has no such implementation then, so that
      // results are not put in place of what is added.  Products of bytes, whose scales cannot
      // stand apart either, keep theirs.
      {.name = "deconvolution-wrapped-epilogue",
       .implementation = "conv:any+*",
       .condition = {.kind = "deconvolution",
                     .epilogue = Presence::kSome,
                     .byte_products = Presence::kNone},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "post-ops take up to 28 times as long as the step without them; results are right",
       .found_by = "steps of training (GoogLeNet's data gradients in blocked layouts)",
       .remedy = Remedy::kEpilogueApart},
      {.name = "depthwise-sum-tail",
       .implementation = "jit_dw:sse41",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kSum,
                     .order = Order::kChannelsLast,
                     .not_multiple = 4,
                     .src_channels = {.least = 1, .most = 1}},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "ends the process where channels do not fill vectors",
       .found_by = "scripts/sweep_kernels"},
      // Divisors are loaded for the channels that there are, so that the padding becomes 0 / 0: the
      // next step that reads it spreads NaN.
      {.name = "depthwise-division-padding",
       .implementation = "jit_dw:avx2",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kBinary,
                     .post_op_algorithm = "div",
                     .order = Order::kBlocked,
                     .not_multiple = 8,
                     .src_channels = {.least = 1, .most = 1}},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "the padding of the result is not zero behind a division",
       .found_by = "scripts/sweep_kernels"},
      {.name = "resampling-binary",
       .implementation = "simple:*",
       .condition = {.kind = "resampling",
                     .post_op = PostOp::Kind::kBinary,
                     .order = Order::kNotPlain},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "binary post-ops read other channels than their own",
       .found_by = "scripts/sweep_kernels"},
      {.name = "log-softmax-sse41",
       .implementation = "jit:sse41",
       .condition = {.kind = "softmax", .algorithm = "log_softmax"},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "results near 0 are off by 5e-6, 1e-4 of their size",
       .found_by = "scripts/sweep_kernels"},
      // The second operand is loaded for whole blocks, so that the padding becomes 0 / 0.
      {.name = "bfloat16-division-padding",
       .implementation = "jit_bf16:*",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kBinary,
                     .post_op_algorithm = "div",
                     .dst_order = Order::kBlocked,
                     .dst_not_multiple = 16},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "the padding of the result is not zero behind a division",
       .found_by = "scripts/sweep_kernels"},
      // Images are copied into a buffer whose last pair of channels is half filled; what stands in
      // the other half is multiplied by 0, which makes NaN of a NaN that was there.  Seen from 513
      // channels on, by windows of 6x6 and 7x7 and not by 5x5.
      {.name = "bfloat16-odd-channels",
       .implementation = "*brgconv*:avx512_core_bf16",
       .condition = {.kind = "",
                     .order = Order::kChannelsLast,
                     .not_multiple = 2,
                     .src_channels = {.least = 257},
                     .kernel_rows = {.least = 3}},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "results are NaN where memory happens to hold NaN",
       .found_by = "scripts/sweep_kernels"},
      // Pixels between windows get what makes up for a shifted source, though nothing was summed
      // there.
      {.name = "deconvolution-gaps",
       .implementation = "jit_deconvolution:*",
       .condition = {.kind = "deconvolution",
                     .gap = {.least = 2},
                     .byte_products = Presence::kSome},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "pixels that no window reaches are not the bias alone",
       .found_by = "scripts/sweep_kernels"},
      {.name = "deconvolution-gaps-vectors",
       .implementation = "jit_uni_int8:*",
       .condition = {.kind = "deconvolution",
                     .gap = {.least = 1},
                     .byte_products = Presence::kSome},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "pixels that no window reaches are not the bias alone",
       .found_by = "scripts/sweep_kernels"},
      // Operands are loaded for whole vectors of channels.
      {.name = "depthwise-bytes-binary",
       .implementation = "jit_uni_int8:*",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kBinary,
                     .not_multiple = 8,
                     .src_channels = {.least = 1, .most = 1},
                     .byte_products = Presence::kSome},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "binary post-ops are wrong on the last channels where these do not fill vectors",
       .found_by = "scripts/sweep_kernels"},
      {.name = "gemm-zero-point",
       .implementation = "*gemm_s8*",
       .condition = {.kind = "convolution", .byte_products = Presence::kSome, .zero_point = true},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "zero points of src are left out, as seen of images of one pixel",
       .found_by = "scripts/sweep_kernels"},
      // Instruction sets without VNNI add products of bytes in pairs, in 16 bits: 255 * 127 * 2 is
      // beyond them.  No version of oneDNN promises otherwise, it asks for weights of 7 bits.
      BytePairs("byte-pairs-avx512", "*:avx512_core"),
      BytePairs("byte-pairs-avx2", "*:avx2"),
      BytePairs("byte-pairs-sse41", "*:sse41"),
      // Named after no instruction set, these use the best there is.
      BytePairs("byte-pairs-gemm", "gemm:*", true),
      BytePairs("byte-pairs-gemm-inside", "*gemm_s8*", true),
      // It returns before it comes to zero points if it reads rows of src and writes elements of
      // dst one by one.  Mended in oneDNN 3.3.
      {.name = "conversion-zero-point",
       .implementation = "jit:uni",
       .condition = {.kind = "quantization", .zero_point = true, .reads_by_rows = true},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "zero points are left out between layouts of different orders",
       .found_by = "scripts/sweep_kernels",
       .remedy = Remedy::kOrderApart},
  };
  return errata;
}

bool Holds(const Condition& condition, const StepDescriptor& step) {
  bool has_epilogue = step.has_bias || !step.post_ops.empty();
  return (condition.kind[0] == '\0' || condition.kind == step.kind) &&
         (condition.algorithm[0] == '\0' || condition.algorithm == step.algorithm) &&
         Is(condition.epilogue, has_epilogue) && HasPostOp(condition, step.post_ops) &&
         HoldsOrder(condition.order, step.src_layout, step.src.size()) &&
         HoldsOrder(condition.dst_order, step.dst_layout, step.dst.size()) &&
         IsNoMultiple(step.src, condition.not_multiple) &&
         IsNoMultiple(step.dst, condition.dst_not_multiple) &&
         condition.src_channels.Has(step.SrcChannels()) &&
         condition.dst_channels.Has(step.DstChannels()) && condition.groups.Has(step.groups) &&
         condition.kernel_rows.Has(LargestOfRows(step.kernel)) &&
         condition.row_stride.Has(LargestOfRows(step.strides)) &&
         condition.gap.Has(LargestGap(step)) &&
         Is(condition.byte_products, MultipliesBytes(step)) &&
         (!condition.no_vnni || !HasIsa(dnnl::cpu_isa::avx512_core_vnni)) &&
         (!condition.zero_point || HasZeroPoint(step)) &&
         (!condition.reads_by_rows || MayReadByRows(step));
}

bool IsOfThisVersion(const Erratum& erratum) {
  const dnnl_version_t* loaded = dnnl_version();
  Version version = {loaded->major, loaded->minor, loaded->patch};
  return erratum.first <= version && version <= erratum.last;
}

std::string ErrataJson() {
  JsonWriter json;
  json.BeginArray();
  for (const Erratum& erratum : Errata()) {
    const Condition& condition = erratum.condition;
    json.BeginObject();
    json.Key("name").String(erratum.name);
    json.Key("implementation").String(erratum.implementation);
    json.Key("condition").BeginObject();
    json.Key("kind").String(condition.kind);
    json.Key("algorithm").String(condition.algorithm);
    json.Key("epilogue").String(Text(condition.epilogue));
    json.Key("post_op").String(Text(condition.post_op));
    json.Key("post_op_algorithm").String(condition.post_op_algorithm);
    json.Key("order").String(Text(condition.order));
    json.Key("dst_order").String(Text(condition.dst_order));
    json.Key("not_multiple").Integer(condition.not_multiple);
    json.Key("dst_not_multiple").Integer(condition.dst_not_multiple);
    WriteRange("src_channels", condition.src_channels, &json);
    WriteRange("dst_channels", condition.dst_channels, &json);
    WriteRange("groups", condition.groups, &json);
    WriteRange("kernel_rows", condition.kernel_rows, &json);
    WriteRange("row_stride", condition.row_stride, &json);
    WriteRange("gap", condition.gap, &json);
    json.Key("byte_products").String(Text(condition.byte_products));
    json.Key("vnni").String(condition.no_vnni ? "none" : "any");
    json.Key("zero_point").String(condition.zero_point ? "some" : "any");
    json.Key("reads_by_rows").String(condition.reads_by_rows ? "may" : "any");
    json.EndObject();
    json.Key("first").String(Text(erratum.first));
    json.Key("last").String(Text(erratum.last));
    json.Key("wrong").String(erratum.wrong);
    json.Key("found_by").String(erratum.found_by);
    json.Key("remedy").String(Text(erratum.remedy));
    json.EndObject();
  }
  json.EndArray();
  return json.Take();
}

}  // namespace mxplan
