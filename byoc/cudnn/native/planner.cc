// Execution plans of operation graphs, built by cuDNN for a device that need not be there.
//
// The one file that includes cudnn-frontend.  It is built where the headers are, loads cuDNN when
// it is asked to, and is asked in JSON, so that it needs no type of anybody else's:
//
//   request  {"device": {...}, "sm": 90, "types": {"io", "intermediate", "compute"},
//             "tensors": [{"uid", "dim", "stride", "type", "virtual"}],
//             "nodes": [{"kind", "in": [uid], "out": uid, ...}],
//             "notes": ["NONDETERMINISTIC"], "workspace_limit": -1, "refused": ["engine"],
//             "all": false}
//   answer   {"engines": [{"name", "error", "workspace"}], "chosen": index, "workspace",
//             "plan": text, "uids": [uid]}             or {"error": text}
//
// Device properties are as cuDNN writes them.  Engines come in the order of its heuristics, without
// those that have one of the notes; the first one that builds is chosen, and those behind it are
// tried where "all" is asked for.
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cudnn/api.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // cudnn-frontend looks its functions up there
}

namespace {

// The runtime's declarations, made without headers, agree with the headers.
static_assert(mxplan::kCudaCopyIn == cudaMemcpyHostToDevice);
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

namespace fe = cudnn_frontend;
using nlohmann::json;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Numbers = std::vector<int64_t>;

void Expect(fe::error_t status) {
  if (status.is_bad()) throw std::runtime_error(status.get_message());
}

fe::DataType_t TypeOf(const json& name) {
  auto type = name.get<fe::DataType_t>();
  if (type == fe::DataType_t::NOT_SET) throw std::runtime_error("unknown type " + name.dump());
  return type;
}

// An operation graph and its tensors by their numbers.
class GraphBuilder {
 public:
  explicit GraphBuilder(const json& request) {
    const json& types = request.at("types");
    graph_.set_io_data_type(TypeOf(types.at("io")))
        .set_intermediate_data_type(TypeOf(types.at("intermediate")))
        .set_compute_data_type(TypeOf(types.at("compute")));
    for (const json& tensor : request.at("tensors")) stated_[tensor.at("uid")] = tensor;
    for (const json& node : request.at("nodes")) Add(node);
  }

  fe::graph::Graph& graph() { return graph_; }

 private:
  void Describe(const json& stated, fe::graph::Tensor_attributes* tensor) {
    tensor->set_uid(stated.at("uid"))
        .set_dim(stated.at("dim").get<Numbers>())
        .set_stride(stated.at("stride").get<Numbers>());
    tensor->set_data_type(TypeOf(stated.at("type")));
  }

  Tensor Read(int64_t uid) {
    auto found = tensors_.find(uid);
    if (found != tensors_.end()) return found->second;
    fe::graph::Tensor_attributes attributes;
    Describe(stated_.at(uid), &attributes);
    return tensors_[uid] = graph_.tensor(attributes);
  }

  Tensor Input(const json& node, size_t number) { return Read(node.at("in").at(number)); }

  Tensor Apply(const json& node) {
    const std::string kind = node.at("kind");
    auto numbers = [&node](const char* name) { return node.at(name).get<Numbers>(); };
    if (kind == "convolution") {
      fe::graph::Conv_fprop_attributes attributes;
      attributes.set_pre_padding(numbers("pre_padding"))
          .set_post_padding(numbers("post_padding"))
          .set_stride(numbers("stride"))
          .set_dilation(numbers("dilation"));
      return graph_.conv_fprop(Input(node, 0), Input(node, 1), attributes);
    }
    if (kind == "data_gradient") {
      fe::graph::Conv_dgrad_attributes attributes;
      attributes.set_pre_padding(numbers("pre_padding"))
          .set_post_padding(numbers("post_padding"))
          .set_stride(numbers("stride"))
          .set_dilation(numbers("dilation"));
      return graph_.conv_dgrad(Input(node, 0), Input(node, 1), attributes);
    }
    if (kind == "matmul") {
      return graph_.matmul(Input(node, 0), Input(node, 1), fe::graph::Matmul_attributes());
    }
    if (kind == "pointwise") {
      fe::graph::Pointwise_attributes attributes;
      attributes.set_mode(node.at("mode").get<fe::PointwiseMode_t>());
      if (node.contains("lower")) attributes.set_relu_lower_clip(node.at("lower").get<float>());
      if (node.contains("upper")) attributes.set_relu_upper_clip(node.at("upper").get<float>());
      if (node.contains("slope"))
        attributes.set_relu_lower_clip_slope(node.at("slope").get<float>());
      if (node.contains("beta")) attributes.set_swish_beta(node.at("beta").get<float>());
      if (node.contains("alpha")) attributes.set_elu_alpha(node.at("alpha").get<float>());
      if (node.at("in").size() == 1) return graph_.pointwise(Input(node, 0), attributes);
      return graph_.pointwise(Input(node, 0), Input(node, 1), attributes);
    }
    if (kind == "resample") {
      fe::graph::Resample_attributes attributes;
      attributes.set_resampling_mode(node.at("mode").get<fe::ResampleMode_t>())
          .set_padding_mode(node.at("padding").get<fe::PaddingMode_t>())
          .set_window(numbers("window"))
          .set_stride(numbers("stride"))
          .set_pre_padding(numbers("pre_padding"))
          .set_post_padding(numbers("post_padding"))
          .set_generate_index(false);
      return graph_.resample(Input(node, 0), attributes)[0];
    }
    if (kind == "reduction") {
      fe::graph::Reduction_attributes attributes;
      attributes.set_mode(node.at("mode").get<fe::ReductionMode_t>());
      return graph_.reduction(Input(node, 0), attributes);
    }
    throw std::runtime_error("unknown kind of node " + kind);
  }

  void Add(const json& node) {
    Tensor result = Apply(node);
    const json& stated = stated_.at(node.at("out"));
    Describe(stated, result.get());
    result->set_output(!stated.at("virtual").get<bool>());
    tensors_[node.at("out")] = result;
  }

  fe::graph::Graph graph_;
  std::map<int64_t, json> stated_;
  std::map<int64_t, Tensor> tensors_;
};

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

json Engine(fe::graph::Graph* graph, int64_t index, const std::string& failure) {
  json engine = {{"name", ""}, {"error", failure}, {"workspace", 0}};
  std::string name;
  if (graph->get_plan_name_at_index(index, name).is_good()) engine["name"] = name;
  return engine;
}

// The engines of a graph, the first of them that builds as a plan.
json Plans(fe::graph::Graph* graph, bool all) {
  json engines = json::array();
  int64_t chosen = -1;
  for (int64_t i = 0; i < graph->get_execution_plan_count(); ++i) {
    if (chosen >= 0 && !all) break;
    fe::error_t status = graph->build_plan_at_index(i);
    json engine = Engine(graph, i, status.is_good() ? "" : status.get_message());
    if (status.is_good()) {
      int64_t workspace = 0;
      Expect(graph->get_workspace_size_plan_at_index(i, workspace));
      engine["workspace"] = workspace;
      if (chosen < 0) chosen = i;
    }
    engines.push_back(engine);
  }
  if (chosen < 0) {
    std::string last = engines.empty() ? "its heuristics name none" : engines.back().at("error");
    return {{"error", "no engine builds a plan: " + last}, {"engines", engines}};
  }
  if (all) Expect(graph->build_plan_at_index(chosen));  // the last one that was built is written
  std::vector<uint8_t> written;
  Expect(graph->serialize(written, false));
  json parts = json::from_ubjson(written);
  for (const char* part :
       {"pass_by_values", "workspace_modifications", "variant_pack_replacements"}) {
    if (!parts.at(part).empty()) {
      return {
          {"error", std::string("the plan needs ") + part + ", which are not carried out here"}};
    }
  }
  if (parts.at("fe_workspace_size") != 0)
    return {{"error", "the plan needs a workspace of the frontend's"}};
  Numbers uids = parts.at("variant_pack_uids").get<Numbers>();
  return {{"engines", engines},
          {"chosen", chosen},
          {"workspace", engines.at(static_cast<size_t>(chosen)).at("workspace")},
          {"plan", parts.at("cudnn_backend_data")},
          {"uids", uids}};
}

json Answer(const json& request) {
  GraphBuilder builder(request);
  fe::graph::Graph& graph = builder.graph();
  auto device = std::make_shared<fe::DeviceProperties>();
  Expect(device->deserialize(Bytes(request.at("device").dump())));
  graph.set_device_properties(device);
  graph.set_sm_version(request.at("sm"));
  Expect(graph.validate());
  Expect(graph.build_operation_graph());
  Expect(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
  graph.deselect_numeric_notes(request.at("notes").get<std::vector<fe::NumericalNote_t>>());
  if (request.at("workspace_limit").get<int64_t>() >= 0) {
    graph.deselect_workspace_greater_than(request.at("workspace_limit"));
  }
  graph.deselect_engines(request.at("refused").get<std::vector<std::string>>());
  return Plans(&graph, request.at("all"));
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

#define MXPLAN_EXPORT extern "C" __attribute__((visibility("default")))

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
