// Execution plans of operation graphs, built by cuDNN for a device that need not be there.
//
// The one file that includes cudnn-frontend.  It is built where the headers are, loads cuDNN when
// it is asked to, and is asked in JSON, so that it needs no type of anybody else's:
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

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // cudnn-frontend looks its functions up there
}

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

// A number; cudnn-frontend reads and writes its own as texts.
float Float(const json& number) { return static_cast<float>(number.get<double>()); }

// An operation graph and its tensors by their numbers.
class GraphBuilder {
 public:
  explicit GraphBuilder(const json& request) {
    const json& types = request.at("types");
    graph_.set_sm_version(request.at("sm"));  // nodes keep what is known when they are made
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
    const json& stated = stated_.at(uid);
    if (stated.contains("number")) {
      Tensor number = graph_.tensor(Float(stated.at("number")));
      number->set_uid(uid);
      return tensors_[uid] = number;
    }
    fe::graph::Tensor_attributes attributes;
    Describe(stated, &attributes);
    return tensors_[uid] = graph_.tensor(attributes);
  }

  Tensor Input(const json& node, size_t number) { return Read(node.at("in").at(number)); }

  // The attributes that convolutions and their gradients have.
  template <typename A>
  static A Windows(const json& node) {
    A attributes;
    attributes.set_pre_padding(node.at("pre_padding").get<Numbers>())
        .set_post_padding(node.at("post_padding").get<Numbers>())
        .set_stride(node.at("stride").get<Numbers>())
        .set_dilation(node.at("dilation").get<Numbers>());
    if (node.contains("compute")) attributes.set_compute_data_type(TypeOf(node.at("compute")));
    return attributes;
  }

  Tensor Pointwise(const json& node) {
    fe::graph::Pointwise_attributes attributes;
    attributes.set_mode(node.at("mode").get<fe::PointwiseMode_t>());
    if (node.contains("compute")) attributes.set_compute_data_type(TypeOf(node.at("compute")));
    auto number = [&node](const char* name) { return Float(node.at(name)); };
    if (node.contains("lower")) attributes.set_relu_lower_clip(number("lower"));
    if (node.contains("upper")) attributes.set_relu_upper_clip(number("upper"));
    if (node.contains("slope")) attributes.set_relu_lower_clip_slope(number("slope"));
    if (node.contains("swish_beta")) attributes.set_swish_beta(number("swish_beta"));
    if (node.contains("elu_alpha")) attributes.set_elu_alpha(number("elu_alpha"));
    if (node.contains("softplus_beta")) attributes.set_softplus_beta(number("softplus_beta"));
    switch (node.at("in").size()) {
      case 1:
        return graph_.pointwise(Input(node, 0), attributes);
      case 2:
        return graph_.pointwise(Input(node, 0), Input(node, 1), attributes);
      default:
        return graph_.pointwise(Input(node, 0), Input(node, 1), Input(node, 2), attributes);
    }
  }

  Tensor Resample(const json& node) {
    fe::graph::Resample_attributes attributes;
    auto numbers = [&node](const char* name) { return node.at(name).get<Numbers>(); };
    attributes.set_resampling_mode(node.at("mode").get<fe::ResampleMode_t>())
        .set_padding_mode(node.at("padding").get<fe::PaddingMode_t>())
        .set_window(numbers("window"))
        .set_stride(numbers("stride"))
        .set_pre_padding(numbers("pre_padding"))
        .set_post_padding(numbers("post_padding"))
        .set_generate_index(false);
    return graph_.resample(Input(node, 0), attributes)[0];
  }

  // Inputs are x, scale, bias, epsilon.
  template <typename A>
  A Normalization(const json& node) {
    A attributes;
    Tensor epsilon = Input(node, 3);
    attributes.set_forward_phase(fe::NormFwdPhase_t::INFERENCE).set_epsilon(epsilon);
    return attributes;
  }

  // Inputs are query, key, value, scale, and what is added to scores where there is such a thing.
  Tensor Attention(const json& node) {
    fe::graph::SDPA_attributes attributes;
    attributes.set_generate_stats(false).set_attn_scale(Input(node, 3));
    if (node.at("in").size() > 4) attributes.set_bias(Input(node, 4));
    const std::string causal = node.at("causal");
    if (causal != "no") {
      attributes.set_diagonal_alignment(causal == "first" ? fe::DiagonalAlignment_t::TOP_LEFT
                                                          : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
      attributes.set_diagonal_band_right_bound(0);
    }
    return graph_.sdpa(Input(node, 0), Input(node, 1), Input(node, 2), attributes)[0];
  }

  std::vector<Tensor> Apply(const json& node) {
    const std::string kind = node.at("kind");
    // Inputs are x, scale, bias, epsilon; results y, the batch's mean and 1 / deviation.
    if (kind == "batch_norm") {
      fe::graph::Batchnorm_attributes attributes;
      Tensor epsilon = Input(node, 3);
      attributes.set_epsilon(epsilon);
      auto [y, mean, deviation, next_mean, next_variance] =
          graph_.batchnorm(Input(node, 0), Input(node, 1), Input(node, 2), attributes);
      return {y, mean, deviation};
    }
    // Inputs are the gradient of y, x, scale, mean, 1 / deviation; results the other gradients.
    if (kind == "batch_norm_gradient") {
      fe::graph::Batchnorm_backward_attributes attributes;
      Tensor mean = Input(node, 3), deviation = Input(node, 4);
      attributes.set_saved_mean_and_inv_variance(mean, deviation);
      auto [x, scale, bias] =
          graph_.batchnorm_backward(Input(node, 0), Input(node, 1), Input(node, 2), attributes);
      return {x, scale, bias};
    }
    return {Single(node, kind)};
  }

  Tensor Single(const json& node, const std::string& kind) {
    if (kind == "convolution") {
      auto attributes = Windows<fe::graph::Conv_fprop_attributes>(node);
      return graph_.conv_fprop(Input(node, 0), Input(node, 1), attributes);
    }
    if (kind == "data_gradient") {
      auto attributes = Windows<fe::graph::Conv_dgrad_attributes>(node);
      return graph_.conv_dgrad(Input(node, 0), Input(node, 1), attributes);
    }
    if (kind == "weights_gradient") {
      auto attributes = Windows<fe::graph::Conv_wgrad_attributes>(node);
      return graph_.conv_wgrad(Input(node, 0), Input(node, 1), attributes);
    }
    if (kind == "matmul") {
      return graph_.matmul(Input(node, 0), Input(node, 1), fe::graph::Matmul_attributes());
    }
    if (kind == "pointwise") return Pointwise(node);
    if (kind == "resample") return Resample(node);
    if (kind == "reduction") {
      fe::graph::Reduction_attributes attributes;
      attributes.set_mode(node.at("mode").get<fe::ReductionMode_t>());
      return graph_.reduction(Input(node, 0), attributes);
    }
    if (kind == "layer_norm") {
      auto attributes = Normalization<fe::graph::Layernorm_attributes>(node);
      return graph_.layernorm(Input(node, 0), Input(node, 1), Input(node, 2), attributes)[0];
    }
    if (kind == "instance_norm") {
      auto attributes = Normalization<fe::graph::Instancenorm_attributes>(node);
      return graph_.instancenorm(Input(node, 0), Input(node, 1), Input(node, 2), attributes)[0];
    }
    if (kind == "attention") return Attention(node);
    throw std::runtime_error("unknown kind of node " + kind);
  }

  void Add(const json& node) {
    std::vector<Tensor> results = Apply(node);
    const json& out = node.at("out");
    for (size_t i = 0; i < results.size(); ++i) {
      const int64_t uid = out.is_array() ? out.at(i) : out;
      const json& stated = stated_.at(uid);
      Describe(stated, results[i].get());
      results[i]->set_output(!stated.at("virtual").get<bool>());
      tensors_[uid] = results[i];
    }
  }

  fe::graph::Graph graph_;
  std::map<int64_t, json> stated_;
  std::map<int64_t, Tensor> tensors_;
};

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
