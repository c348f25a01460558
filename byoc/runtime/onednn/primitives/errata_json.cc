// The table of errata as JSON; see errata.h.
#include <optional>
#include <string>

#include "base/json.h"
#include "onednn/primitives/errata.h"

namespace mxplan {
namespace {

void WriteRange(const char* name, const Range& range, JsonWriter* json) {
  json->Key(name).BeginObject().Key("least").Integer(range.least);
  json->Key("most").Integer(range.most).EndObject();
}

std::string Text(const Version& version) {
  return std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
         std::to_string(version[2]);
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

}  // namespace

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
