// The table of rules and what all kinds have in common; see step_rules.h.
#include "program/step_rules.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "program/shapes/quantized.h"
#include "program/shapes/step_shapes.h"
#include "program/step_attributes.h"
#include "program/step_types.h"

namespace mxplan {
namespace {

// The post-ops that an executable of the kind may be given.
enum class PostOps : uint8_t { kNone, kAny };

struct Rule {
  std::string_view kind;
  std::vector<const char*> needed, allowed;  // roles, each once
  Types types;
  PostOps post_ops;
  void (*check)(const StepView& s);
};

// Behind the roles of the table every kind has dst; a concatenation has as many src as it likes.
const std::vector<Rule>& Rules() {
  static const std::vector<Rule> rules = {
      {"convolution",
       {"src", "weights"},
       {"bias", "depthwise_weights", "depthwise_bias"},
       Types::kProduct,
       PostOps::kAny,
       CheckConvolution},
      {"deconvolution",
       {"src", "weights"},
       {"bias"},
       Types::kProduct,
       PostOps::kAny,
       CheckDeconvolution},
      {"convolution_backward_weights",
       {"src", "gradient"},
       {},
       Types::kFloat,
       PostOps::kNone,
       CheckConvolutionBackwardWeights},
      {"matmul", {"src", "weights"}, {"bias"}, Types::kProduct, PostOps::kAny, CheckMatMul},
      {"inner_product",
       {"src", "weights"},
       {"bias"},
       Types::kProduct,
       PostOps::kAny,
       CheckInnerProduct},
      {"few_bits_product",
       {"src", "numbers", "scales"},
       {"zero_points"},
       Types::kFewBits,
       PostOps::kAny,
       CheckFewBitsProduct},
      {"grouped_product",
       {"src", "weights", "ends"},
       {},
       Types::kCounted,
       PostOps::kAny,
       CheckGroupedProduct},
      {"pooling", {"src"}, {}, Types::kPooled, PostOps::kAny, CheckPooling},
      {"pooling_backward",
       {"src", "gradient"},
       {},
       Types::kFloat,
       PostOps::kNone,
       CheckPoolingBackward},
      {"batch_normalization",
       {"src", "mean", "variance", "scale", "shift"},
       {},
       Types::kFloat,
       PostOps::kAny,
       CheckBatchNormalization},
      {"batch_normalization_training",
       {"src", "scale", "shift", "batch_mean", "batch_variance"},
       {},
       Types::kFloat,
       PostOps::kNone,
       CheckBatchNormalization},
      {"batch_normalization_backward",
       {"src", "gradient", "mean", "variance", "scale", "scale_gradient", "shift_gradient"},
       {},
       Types::kFloat,
       PostOps::kNone,
       CheckBatchNormalization},
      {"layer_normalization",
       {"src"},
       {"scale", "shift"},
       Types::kFloat,
       PostOps::kAny,
       CheckLayerNormalization},
      {"layer_normalization_backward",
       {"src", "gradient", "scale", "scale_gradient", "shift_gradient"},
       {},
       Types::kFloat,
       PostOps::kNone,
       CheckLayerNormalization},
      {"rms_normalization",
       {"src"},
       {"scale"},
       Types::kFloat,
       PostOps::kNone,
       CheckLayerNormalization},
      {"squeeze_excite",
       {"src", "weights"},
       {"bias", "gate_weights", "gate_bias"},
       Types::kFloat,
       PostOps::kAny,
       CheckSqueezeExcite},
      {"rotary", {"src", "cosines", "sines"}, {}, Types::kFloat, PostOps::kNone, CheckRotary},
      {"lrn", {"src"}, {}, Types::kFloat, PostOps::kAny, CheckLrn},
      {"softmax", {"src"}, {}, Types::kFloat, PostOps::kAny, CheckSoftmax},
      {"eltwise", {"src"}, {}, Types::kFloat, PostOps::kAny, CheckSameShape},
      {"binary", {"src", "src1"}, {}, Types::kAlike, PostOps::kAny, CheckBinary},
      {"prelu", {"src", "weights"}, {}, Types::kFloat, PostOps::kAny, CheckPRelu},
      {"reduction", {"src"}, {}, Types::kFloat, PostOps::kAny, CheckReduction},
      {"recurrent",
       {"src", "weights", "recurrence"},
       {"bias", "peepholes", "hidden", "cell", "last_hidden", "last_cell"},
       Types::kFloat,
       PostOps::kNone,
       CheckRecurrent},
      {"recurrent_training",
       {"src", "recurrence", "kept_gates"},
       {"bias", "hidden", "cell", "kept_cells", "last_cell"},
       Types::kFloat,
       PostOps::kNone,
       CheckRecurrentTraining},
      {"recurrent_backward",
       {"src", "recurrence", "outputs", "gradient", "hidden_gradient"},
       {"cells", "hidden", "cell", "last_cell_gradient", "reset_gradient", "cell_gradient"},
       Types::kFloat,
       PostOps::kNone,
       CheckRecurrentBackward},
      {"attention",
       {"src", "key", "value"},
       {"mask", "past_key", "past_value", "joined_key", "joined_value", "filled"},
       Types::kCounted,
       PostOps::kNone,
       CheckAttention},
      {"concat", {"src"}, {}, Types::kSame, PostOps::kAny, CheckConcat},
      {"shuffle", {"src"}, {}, Types::kSame, PostOps::kAny, CheckShuffle},
      {"resampling", {"src"}, {}, Types::kFloat, PostOps::kAny, CheckResampling},
      {"pad", {"src"}, {}, Types::kSame, PostOps::kNone, CheckPad},
      {"slice", {"src"}, {}, Types::kSame, PostOps::kNone, CheckSlice},
      {"strided_slice", {"src"}, {}, Types::kSame, PostOps::kNone, CheckStridedSlice},
      {"gather", {"src", "indices"}, {}, Types::kIndices, PostOps::kNone, CheckGather},
      {"gather_elements",
       {"src", "indices"},
       {},
       Types::kIndices,
       PostOps::kNone,
       CheckGatherElements},
      {"gather_nd", {"src", "indices"}, {}, Types::kIndices, PostOps::kNone, CheckGatherNd},
      {"gather_places", {"src"}, {}, Types::kSame, PostOps::kNone, CheckGatherPlaces},
      {"scatter_elements",
       {"src", "indices", "updates"},
       {},
       Types::kIndices,
       PostOps::kNone,
       CheckScatterElements},
      {"put", {"src", "part"}, {}, Types::kSame, PostOps::kNone, CheckPut},
      {"scatter", {"src", "indices", "updates"}, {}, Types::kIndices, PostOps::kNone, CheckScatter},
      {"cumulative_sum", {"src"}, {}, Types::kSame, PostOps::kNone, CheckCumulativeSum},
      {"extreme_index", {"src"}, {}, Types::kFound, PostOps::kNone, CheckExtremeIndex},
      {"ranking", {"src"}, {"order"}, Types::kRanked, PostOps::kNone, CheckRanking},
      {"select", {"condition", "src", "src1"}, {}, Types::kCondition, PostOps::kNone, CheckSelect},
      {"compare", {"src", "src1"}, {}, Types::kCompared, PostOps::kNone, CheckBinary},
      {"cast", {"src"}, {}, Types::kAny, PostOps::kNone, CheckSameShape},
      {"resize", {"src"}, {}, Types::kFloat, PostOps::kNone, CheckResampling},
      {"grid_sample", {"src", "grid"}, {}, Types::kFloat, PostOps::kNone, CheckGridSample},
      {"reorder", {"src"}, {}, Types::kConvert, PostOps::kNone, CheckSameShape},
      {"quantization", {"src"}, {}, Types::kQuantized, PostOps::kNone, CheckSameShape},
      {"dynamic_quantization",
       {"src", "made_scale", "made_zero_point"},
       {},
       Types::kMeasured,
       PostOps::kNone,
       CheckSameShape},
  };
  return rules;
}

bool IsOneOf(const std::vector<const char*>& roles, const std::string& role) {
  return std::any_of(roles.begin(), roles.end(), [&](const char* one) { return role == one; });
}

// Whether the role is one of scales and zero points, which products and conversions have.
bool TakesScales(const Rule& rule, const std::string& role) {
  const bool takes = rule.types == Types::kProduct || rule.types == Types::kQuantized;
  return takes && IsScaleRole(role);
}

void CheckRoles(const Step& step, const Rule& rule) {
  std::vector<const char*> needed = rule.needed;
  needed.push_back("dst");
  for (const char* role : needed) {
    if (step.Find(role) < 0) ThrowInvalidInput("no operand in role ", role);
  }
  bool pieces = rule.kind == "concat";
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const std::string& role = step.operands[i].role;
    if (!IsOneOf(needed, role) && !IsOneOf(rule.allowed, role) && !TakesScales(rule, role)) {
      ThrowInvalidInput("an operand in role ", role, ", which the kind has not");
    }
    auto same = [&](const Operand& other) { return other.role == role; };
    auto before = step.operands.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(step.operands.begin(), before, same) && !(pieces && role == "src")) {
      ThrowInvalidInput("more than one operand in role ", role);
    }
  }
}

// Vectors for each channel are read as they stand: no layout but that with one element behind the
// other.
void CheckVectors(const StepView& s) {
  for (const char* role :
       {"bias", "depthwise_bias", "mean", "variance", "scale", "shift", "batch_mean",
        "batch_variance", "scale_gradient", "shift_gradient", "src_scale", "src_zero_point",
        "weights_scale", "dst_scale", "dst_zero_point", "made_scale", "made_zero_point"}) {
    int id = s.step().Find(role);
    if (id < 0) continue;
    const std::string& tag = s.resolved().program->values[static_cast<size_t>(id)].layout;
    bool blocked =
        std::any_of(tag.begin(), tag.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (blocked) ThrowInvalidInput(role, ": expected a layout without blocks, got ", tag);
  }
}

// A sum adds what dst's bytes hold: another value of the same shape and layout that dst is an alias
// of, or what the caller has in the tensor of an output.
void CheckSum(const StepView& s) {
  const Program& program = *s.resolved().program;
  const auto id = static_cast<size_t>(s.step().Find("dst"));
  const Value& dst = program.values[id];
  if (dst.alias_of < 0 && dst.kind == ValueKind::kOutput) return;
  if (dst.alias_of < 0)
    ThrowInvalidInput("post-op sum: expected dst to be an alias of what is added, got none");
  const auto added = static_cast<size_t>(dst.alias_of);
  const ResolvedValue &mine = s.resolved().values[id], &other = s.resolved().values[added];
  const Value& value = program.values[added];
  if (mine.offset != other.offset || mine.dims != other.dims || dst.dtype != value.dtype ||
      dst.layout != value.layout) {
    ThrowInvalidInput("post-op sum: expected dst as ", value.name, " is, ", value.dtype, " ",
                      ToString(other.dims), " ", value.layout, " at byte ", other.offset, ", got ",
                      dst.dtype, " ", ToString(mine.dims), " ", dst.layout, " at byte ",
                      mine.offset);
  }
}

void CheckPostOps(const StepView& s, const Rule& rule) {
  const Step& step = s.step();
  const std::vector<PostOp>& ops = step.post_ops;
  if (rule.post_ops == PostOps::kNone && !ops.empty()) {
    ThrowInvalidInput("post-ops, which the kind has not");
  }
  auto is_depthwise = [](const PostOp& op) { return op.kind == PostOp::Kind::kDepthwise; };
  const auto depthwise = std::count_if(ops.begin(), ops.end(), is_depthwise);
  if (depthwise > (rule.kind == "convolution" ? 1 : 0)) {
    ThrowInvalidInput("post-op depthwise: ", depthwise, " of them behind a ", rule.kind);
  }
  if ((depthwise > 0) != s.Has("depthwise_weights") ||
      (depthwise == 0 && s.Has("depthwise_bias"))) {
    ThrowInvalidInput("depthwise_weights: expected with a depthwise post-op, and only there");
  }
  if (depthwise > 0 && TextOf(step, "algorithm") != "direct") {
    ThrowInvalidInput("post-op depthwise: expected algorithm direct, got ",
                      TextOf(step, "algorithm"));
  }
  Dims shape = BeforeDepthwise(s);
  for (const PostOp& op : ops) {
    if (op.kind == PostOp::Kind::kBinary) {
      ExpectBroadcast("post-op " + op.algorithm, s.ShapeOf(op.value), shape);
    } else if (op.kind == PostOp::Kind::kSum) {
      CheckSum(s);
    } else if (op.kind == PostOp::Kind::kDepthwise) {
      shape = s.Shape("dst");
    }
  }
}

// Kinds whose result is known where src has no elements (`BuildEmpty`): a sum over nothing is 0.
bool IsSum(const Rule& rule) {
  std::string_view kind = rule.kind;
  return kind == "convolution" || kind == "deconvolution" || kind == "matmul" ||
         kind == "inner_product" || kind == "pooling" || kind == "reduction" ||
         kind == "convolution_backward_weights";
}

// Any other result that is made of nothing would stay unwritten.
void CheckElements(const StepView& s, const Rule& rule) {
  auto is_empty = [](const Dims& shape) {
    return std::find(shape.begin(), shape.end(), 0) != shape.end();
  };
  // A layer over no steps hands its states on; over no samples it has nothing to do.
  const bool is_movement = rule.kind == "concat" || rule.kind == "pad" || rule.kind == "put" ||
                           rule.kind == "scatter" || rule.kind == "scatter_elements";
  if (is_movement || rule.kind == "recurrent" || is_empty(s.Shape("dst"))) return;
  if (IsSum(rule) && is_empty(s.Shape("src"))) return;
  for (const Operand& operand : s.step().operands) {
    const Dims& shape = s.ShapeOf(operand.value);
    if (!is_empty(shape)) continue;
    ThrowUnsupported(operand.role, ": expected elements, got shape ", ToString(shape),
                     " for a dst of shape ", ToString(s.Shape("dst")));
  }
}

}  // namespace

void CheckStep(const Step& step, const Resolved& resolved, const StepLimits& limits) {
  const std::vector<Rule>& rules = Rules();
  auto rule = std::find_if(rules.begin(), rules.end(),
                           [&](const Rule& one) { return one.kind == step.kind; });
  if (rule == rules.end()) return;
  StepView view(step, resolved, limits);
  CheckRoles(step, *rule);
  CheckTypes(view, rule->types);
  for (const Operand& operand : step.operands) {
    const Dims& shape = view.ShapeOf(operand.value);
    for (int64_t extent : shape) {
      if (extent > INT32_MAX) {
        ThrowInvalidInput(operand.role, ": expected extents below 2^31, got shape ",
                          ToString(shape));
      }
    }
  }
  rule->check(view);
  CheckVectors(view);
  CheckPostOps(view, *rule);
  CheckElements(view, *rule);
}

}  // namespace mxplan
