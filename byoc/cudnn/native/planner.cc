// Execution plans of operation graphs, built by cuDNN for a device that need not be there.
//
// Built where cudnn-frontend's headers are, which are included here and in operation_graph.h.  It
// loads cuDNN when it is asked to, and is asked in JSON, so that it needs no type of anybody
// else's:
//
//   request  {"device": {...}, "sm": 90, "types": {"io", "intermediate", "compute"},
//             "tensors": [{"uid", "dim", "stride", "type", "virtual"}] or {"uid", "number"}, a
//             number
//                        that executions are handed from the host's memory,
//             "nodes": [{"kind", "in": [uid], "out": uid, or [uid] of several results, ...}],
//             "notes": ["NONDETERMINISTIC"], "behavior": ["RUNTIME_COMPILATION"],
//             "workspace_limit": -1, "refused": ["engine"], "all": false,
//             "candidates": 8,     optional: so many plans, engines of the heuristics' mode B among
//                                  them; each engine then has the fields of an answer
//             "only": "engine"}    optional: that engine alone
//   answer   {"engines": [{"name", "error", "workspace"}], "chosen": index, "workspace",
//             "plan": text, "uids": [uid],
//             "scalars": [{"uid", "bytes"}]}           or {"error": text}
//
// Device properties are as cuDNN writes them.  Engines come in the order of its heuristics, without
// those that have one of the notes, or behave so; the first one that builds is chosen, and those
// behind it are tried where "all" is asked for.
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "cudnn/api.h"
#include "operation_graph.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // cudnn-frontend looks its functions up there
}

namespace mxplan::cudnn_planner {
namespace {

// The runtime's declarations, made without headers, agree with the headers.
static_assert(mxplan::kCudaCopyIn == cudaMemcpyHostToDevice);
static_assert(mxplan::kCudaEventWithoutTime == cudaEventDisableTiming);
static_assert(mxplan::kCudaEventWithTime == cudaEventDefault);
static_assert(mxplan::kCudaNotReady == cudaErrorNotReady);
static_assert(mxplan::kCudaStreamApart == cudaStreamNonBlocking);
static_assert(mxplan::kCudaCaptureOfThread == cudaStreamCaptureModeThreadLocal);
static_assert(mxplan::kCudaMultiprocessors == cudaDevAttrMultiProcessorCount);
static_assert(mxplan::kCudaMajor == cudaDevAttrComputeCapabilityMajor);
static_assert(mxplan::kCudaMinor == cudaDevAttrComputeCapabilityMinor);
static_assert(mxplan::kCudnnTypeHandle == CUDNN_TYPE_HANDLE);
static_assert(mxplan::kCudnnTypeInt64 == CUDNN_TYPE_INT64);
static_assert(mxplan::kCudnnTypePointer == CUDNN_TYPE_VOID_PTR);
static_assert(mxplan::kCudnnTypeChar == CUDNN_TYPE_CHAR);
static_assert(mxplan::kCudnnPlan == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
static_assert(mxplan::kCudnnVariantPack == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
static_assert(mxplan::kCudnnPlanHandle == CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
static_assert(mxplan::kCudnnPlanText == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
static_assert(mxplan::kCudnnPackIds == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
static_assert(mxplan::kCudnnPackPointers == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
static_assert(mxplan::kCudnnPackWorkspace == CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
static_assert(mxplan::kCudnnFloat == CUDNN_DATA_FLOAT && mxplan::kCudnnHalf == CUDNN_DATA_HALF);
static_assert(mxplan::kCudnnBfloat16 == CUDNN_DATA_BFLOAT16);
static_assert(mxplan::kCudnnSoftmaxAccurate == CUDNN_SOFTMAX_ACCURATE);
static_assert(mxplan::kCudnnSoftmaxLog == CUDNN_SOFTMAX_LOG);
static_assert(mxplan::kCudnnSoftmaxChannel == CUDNN_SOFTMAX_MODE_CHANNEL);
static_assert(mxplan::kCudnnPoolMax == CUDNN_POOLING_MAX);
static_assert(mxplan::kCudnnPoolWithPadding == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING);
static_assert(mxplan::kCudnnPoolWithoutPadding == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
static_assert(mxplan::kCudnnPropagateNan == CUDNN_PROPAGATE_NAN);

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

// Numbers that executions are handed from the host's memory, as bytes in hexadecimal digits.
json Scalars(const json& written) {
  json scalars = json::array();
  for (const auto& [uid, text] : written.items()) {
    auto value = text.get<fe::graph::Tensor_attributes::pass_by_values_t>();
    std::string bytes = std::visit(
        [](const auto& number) {
          return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
        },
        value);
    std::string digits;
    for (unsigned char byte : bytes) {
      digits += "0123456789abcdef"[byte >> 4];
      digits += "0123456789abcdef"[byte & 15];
    }
    scalars.push_back({{"uid", std::stoll(uid)}, {"bytes", digits}});
  }
  return scalars;
}

std::string NameOf(fe::graph::Graph* graph, int64_t index) {
  std::string name;
  return graph->get_plan_name_at_index(index, name).is_good() ? name : "";
}

// The plan that was built last, in the fields that are carried out where it runs.
json Written(fe::graph::Graph* graph, int64_t workspace) {
  std::vector<uint8_t> written;
  Expect(graph->serialize(written, false));
  json parts = json::from_ubjson(written);
  for (const char* part : {"workspace_modifications", "variant_pack_replacements"}) {
    if (!parts.at(part).empty()) {
      return {
          {"error", std::string("the plan needs ") + part + ", which are not carried out here"}};
    }
  }
  if (parts.at("fe_workspace_size") != 0)
    return {{"error", "the plan needs a workspace of the frontend's"}};
  return {{"workspace", workspace},
          {"plan", parts.at("cudnn_backend_data")},
          {"uids", parts.at("variant_pack_uids").get<Numbers>()},
          {"scalars", Scalars(parts.at("pass_by_values"))}};
}

// The engines of a graph, the first that builds as a plan; of several candidates, the plan of each.
json Plans(fe::graph::Graph* graph, const json& request) {
  const int64_t candidates = request.value("candidates", 0);
  const std::string only = request.value("only", "");
  const bool all = request.at("all");
  json engines = json::array(), plan;
  int64_t chosen = -1, built = 0, first = -1;
  for (int64_t i = 0; i < graph->get_execution_plan_count(); ++i) {
    if (built > 0 && !all && built >= candidates) break;
    if (!only.empty() && NameOf(graph, i) != only) continue;
    fe::error_t status = graph->build_plan_at_index(i);
    json engine = {{"name", NameOf(graph, i)}, {"error", ""}, {"workspace", 0}};
    if (status.is_good()) {
      int64_t workspace = 0;
      Expect(graph->get_workspace_size_plan_at_index(i, workspace));
      engine["workspace"] = workspace;
      ++built;
      if (candidates > 0) engine.update(Written(graph, workspace));
      if (chosen < 0) {
        chosen = static_cast<int64_t>(engines.size());
        first = i;
      }
    } else {
      engine["error"] = status.get_message();
    }
    engines.push_back(engine);
  }
  if (chosen < 0) {
    std::string last = engines.empty() ? "its heuristics name none"
                                       : engines.back().at("error").get<std::string>();
    return {{"error", "no engine builds a plan: " + last}, {"engines", engines}};
  }
  if (built > 1) Expect(graph->build_plan_at_index(first));  // the last one is written
  json answer = Written(graph, engines.at(static_cast<size_t>(chosen)).at("workspace"));
  answer["engines"] = engines;
  answer["chosen"] = chosen;
  return answer;
}

json Answer(const json& request) {
  GraphBuilder builder(request);
  fe::graph::Graph& graph = builder.graph();
  auto device = std::make_shared<fe::DeviceProperties>();
  Expect(device->deserialize(Bytes(request.at("device").dump())));
  graph.set_device_properties(device);
  Expect(graph.validate());
  Expect(graph.build_operation_graph());
  std::vector<fe::HeurMode_t> modes = {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK};
  if (request.value("candidates", 0) > 0 || request.contains("only")) {
    modes.insert(modes.begin() + 1, fe::HeurMode_t::B);
  }
  Expect(graph.create_execution_plans(modes));
  graph.deselect_numeric_notes(request.at("notes").get<std::vector<fe::NumericalNote_t>>());
  graph.deselect_behavior_notes(request.at("behavior").get<std::vector<fe::BehaviorNote_t>>());
  if (request.at("workspace_limit").get<int64_t>() >= 0) {
    graph.deselect_workspace_greater_than(request.at("workspace_limit"));
  }
  graph.deselect_engines(request.at("refused").get<std::vector<std::string>>());
  return Plans(&graph, request);
}

json PropertiesOf(int32_t number) {
  fe::DeviceProperties device;
  Expect(device.set_device_id(number).build());
  std::vector<uint8_t> written;
  Expect(device.serialize(written));
  std::string text(written.begin(), written.end());
  return json::parse(text.substr(0, text.find_last_of('}') + 1));
}

using Take = void (*)(const char* answer, int64_t size);

// Hands over what `make` gives, or its failure.
template <typename F>
void Tell(Take take, const F& make) {
  std::string answer;
  try {
    answer = make().dump();
  } catch (const std::exception& error) {
    answer = json{{"error", error.what()}}.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  take(answer.data(), static_cast<int64_t>(answer.size()));
}

}  // namespace
}  // namespace mxplan::cudnn_planner

using namespace mxplan::cudnn_planner;  // exported names stand outside

#define MXPLAN_TEXT_OF(number) #number
#define MXPLAN_TEXT(number) MXPLAN_TEXT_OF(number)
#define MXPLAN_FRONTEND                     \
  MXPLAN_TEXT(CUDNN_FRONTEND_MAJOR_VERSION) \
  "." MXPLAN_TEXT(CUDNN_FRONTEND_MINOR_VERSION) "." MXPLAN_TEXT(CUDNN_FRONTEND_PATCH_VERSION)

#define MXPLAN_EXPORT extern "C" __attribute__((visibility("default")))

// Read from the file by Python: plans depend on the headers that this was built with.
extern "C" {
__attribute__((visibility("default"))) extern const char MxplanCudnnFrontend[];
const char MxplanCudnnFrontend[] = "mxplan-cudnn-frontend=" MXPLAN_FRONTEND ";";
}

// Loads cuDNN, once; returns its version, or 0 with the reason in `failure`.
MXPLAN_EXPORT int64_t MxplanCudnnLoad(const char* path, char* failure, int64_t size) {
  if (fe::cudnn_dlhandle == nullptr) fe::cudnn_dlhandle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (fe::cudnn_dlhandle == nullptr) {
    std::string reason = dlerror();
    reason.copy(failure, static_cast<size_t>(size));
    return 0;
  }
  return static_cast<int64_t>(fe::detail::get_backend_version());
}

// `take` is called once with the answer, which is good until it returns.
MXPLAN_EXPORT void MxplanCudnnPlan(const char* request, int64_t size, Take take) {
  Tell(take, [&] { return Answer(json::parse(request, request + size)); });
}

// {"device": {...}} of a GPU that is here, or {"error": text}.
MXPLAN_EXPORT void MxplanCudnnDevice(int32_t device, Take take) {
  Tell(take, [&] { return json{{"device", PropertiesOf(device)}}; });
}
