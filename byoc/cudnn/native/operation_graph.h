// An operation graph of cudnn-frontend's, made of the one that is written in JSON; see planner.cc.
#ifndef TVM_MXPLAN_BYOC_CUDNN_NATIVE_OPERATION_GRAPH_H_
#define TVM_MXPLAN_BYOC_CUDNN_NATIVE_OPERATION_GRAPH_H_

#include <cudnn_frontend.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace mxplan::cudnn_planner {

namespace fe = cudnn_frontend;
using nlohmann::json;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Numbers = std::vector<int64_t>;

inline void Expect(fe::error_t status) {
  if (status.is_bad()) throw std::runtime_error(status.get_message());
}

inline fe::DataType_t TypeOf(const json& name) {
  auto type = name.get<fe::DataType_t>();
  if (type == fe::DataType_t::NOT_SET) throw std::runtime_error("unknown type " + name.dump());
  return type;
}

// A number; cudnn-frontend reads and writes its own as texts.
inline float Float(const json& number) { return static_cast<float>(number.get<double>()); }

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

}  // namespace mxplan::cudnn_planner

#endif  // TVM_MXPLAN_BYOC_CUDNN_NATIVE_OPERATION_GRAPH_H_
