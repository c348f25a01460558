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

namespace mxplan {
namespace {

enum class Types : uint8_t {
  kFloat,  // every operand is of a floating type that some library computes in; which go together,
           // the library says
  kProduct,    // as kFloat, or integers with scales (shapes/quantized.h)
  kCounted,    // as kFloat, but for a count of int32
  kPooled,     // as kFloat, or kSame for a maximum
  kQuantized,  // real numbers and integers into each other, by scales (shapes/quantized.h)
  kMeasured,   // real numbers into integers, by scales that follow (shapes/quantized.h)
  kFewBits,    // float32, but for words and zero points (shapes/quantized.h)
  kSame,       // bytes are moved: every operand is of dst's type
  kConvert,    // as kSame, or from one floating type into another
  kAlike,      // as kFloat, or kSame in a type that the library computes with
  kIndices,    // as kSame, but for indices of int32 or int64
  kCondition,  // as kSame, but for a condition of bool
  kCompared,   // every operand is of src's type, dst of bool
  kFound,      // dst has places, of int32 or int64
  kRanked,     // as kSame, but for places of int32 or int64
  kAny,        // each of its own, of which the library says more
};

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
      {"cumulative_sum", {"src"}, {}, Types::kSame, PostOps::kNone, CheckCumulativeSum},
      {"extreme_index", {"src"}, {}, Types::kFound, PostOps::kNone, CheckExtremeIndex},
      {"ranking", {"src"}, {"order"}, Types::kRanked, PostOps::kNone, CheckRanking},
      {"select", {"condition", "src", "src1"}, {}, Types::kCondition, PostOps::kNone, CheckSelect},
      {"compare", {"src", "src1"}, {}, Types::kCompared, PostOps::kNone, CheckBinary},
      {"cast", {"src"}, {}, Types::kAny, PostOps::kNone, CheckSameShape},
      {"resize", {"src"}, {}, Types::kFloat, PostOps::kNone, CheckResampling},
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

// float16 is one of the types of libraries that say so.
bool IsFloating(const StepView& s, const std::string& type) {
  return type == "float32" || type == "bfloat16" || (type == "float16" && s.limits().float16);
}

void CheckFloating(const StepView& s, const std::string& what, int value) {
  const std::string& type = TypeOf(s, value);
  if (IsFloating(s, type)) return;
  const char* known = s.limits().float16 ? "float32, bfloat16 or float16" : "float32 or bfloat16";
  ThrowInvalidInput(what, ": expected ", known, ", got ", type);
}

// The type that an operand has to be of, where it is not any floating one.
std::string ExpectedType(const StepView& s, const Rule& rule, const Operand& operand) {
  const std::string &role = operand.role, &type = TypeOf(s, operand.value);
  if (rule.types == Types::kAny) return type;
  if (rule.types == Types::kCounted) return "int32";
  const char* places = rule.types == Types::kIndices  ? "indices"
                       : rule.types == Types::kFound  ? "dst"
                       : rule.types == Types::kRanked ? "order"
                                                      : "";
  if (role == places) return type == "int32" ? "int32" : "int64";
  if (rule.types == Types::kFound) return type;
  if (rule.types == Types::kCondition && role == "condition") return "bool";
  if (rule.types == Types::kCompared) {
    return role == "dst" ? "bool" : TypeOf(s, s.step().Find("src"));
  }
  return TypeOf(s, s.step().Find("dst"));
}

// Whether an operand has to be of a floating type.
bool IsFloat(const StepView& s, const Rule& rule, const Operand& operand) {
  if (rule.types == Types::kCounted) return operand.role != "filled";
  if (rule.types != Types::kPooled) {
    return rule.types == Types::kFloat || rule.types == Types::kProduct;
  }
  return TextOf(s.step(), "algorithm") != "max" || !IsShortInteger(TypeOf(s, s.step().Find("src")));
}

void CheckTypes(const StepView& s, const Rule& rule) {
  const Step& step = s.step();
  const bool quantized = IsQuantized(s);
  if (rule.types == Types::kQuantized) return CheckQuantization(s);
  if (rule.types == Types::kMeasured) return CheckDynamicQuantization(s);
  if (rule.types == Types::kFewBits) return CheckFewBits(s);
  if (quantized) CheckQuantizedProduct(s);
  for (const Operand& operand : step.operands) {
    if (quantized) break;
    if (IsFloat(s, rule, operand)) {
      CheckFloating(s, operand.role, operand.value);
      continue;
    }
    const std::string &type = TypeOf(s, operand.value), expected = ExpectedType(s, rule, operand);
    const bool floating = IsFloating(s, type) && IsFloating(s, expected);
    const bool converts = rule.types == Types::kConvert || rule.types == Types::kAlike;
    if (type != expected && !(converts && floating)) {
      ThrowInvalidInput(operand.role, ": expected ", expected, ", got ", type);
    }
  }
  for (const PostOp& op : step.post_ops) {
    if (op.kind != PostOp::Kind::kBinary || (quantized && IsShortInteger(TypeOf(s, op.value)))) {
      continue;
    }
    CheckFloating(s, "post-op " + op.algorithm, op.value);
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
  const bool is_movement = rule.kind == "concat" || rule.kind == "pad";
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
  CheckTypes(view, *rule);
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
