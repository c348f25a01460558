// Names of algorithms; see algorithms.h.
#include "onednn/algorithms.h"

#include <map>

#include "base/error.h"

namespace mxplan {
namespace {

using dnnl::algorithm;
using Table = std::map<std::string, algorithm>;

algorithm Find(const Table& table, const std::string& name, const char* what) {
  auto found = table.find(name);
  if (found == table.end()) ThrowUnsupported(what, " algorithm ", name, " is not known");
  return found->second;
}

}  // namespace

algorithm EltwiseAlgorithm(const std::string& name) {
  static const Table table = {
      {"relu", algorithm::eltwise_relu},
      {"tanh", algorithm::eltwise_tanh},
      {"elu", algorithm::eltwise_elu},
      {"square", algorithm::eltwise_square},
      {"abs", algorithm::eltwise_abs},
      {"sqrt", algorithm::eltwise_sqrt},
      {"linear", algorithm::eltwise_linear},
      {"soft_relu", algorithm::eltwise_soft_relu},
      {"hardsigmoid", algorithm::eltwise_hardsigmoid},
      {"logistic", algorithm::eltwise_logistic},
      {"mish", algorithm::eltwise_mish},
      {"exp", algorithm::eltwise_exp},
      {"gelu_tanh", algorithm::eltwise_gelu_tanh},
      {"gelu_erf", algorithm::eltwise_gelu_erf},
      {"swish", algorithm::eltwise_swish},
      {"log", algorithm::eltwise_log},
      {"clip", algorithm::eltwise_clip},
      {"clip_v2", algorithm::eltwise_clip_v2},
      {"hardswish", algorithm::eltwise_hardswish},
      {"pow", algorithm::eltwise_pow},
      {"round", algorithm::eltwise_round},
  };
  return Find(table, name, "eltwise");
}

algorithm BinaryAlgorithm(const std::string& name) {
  static const Table table = {
      {"add", algorithm::binary_add}, {"sub", algorithm::binary_sub},
      {"mul", algorithm::binary_mul}, {"div", algorithm::binary_div},
      {"min", algorithm::binary_min}, {"max", algorithm::binary_max},
      {"gt", algorithm::binary_gt},   {"ge", algorithm::binary_ge},
      {"le", algorithm::binary_le},
  };
  return Find(table, name, "binary");
}

algorithm PoolingAlgorithm(const std::string& name) {
  static const Table table = {
      {"max", algorithm::pooling_max},
      {"avg_include_padding", algorithm::pooling_avg_include_padding},
      {"avg_exclude_padding", algorithm::pooling_avg_exclude_padding},
  };
  return Find(table, name, "pooling");
}

algorithm ReductionAlgorithm(const std::string& name) {
  static const Table table = {
      {"mean", algorithm::reduction_mean}, {"sum", algorithm::reduction_sum},
      {"max", algorithm::reduction_max},   {"min", algorithm::reduction_min},
      {"mul", algorithm::reduction_mul},
  };
  return Find(table, name, "reduction");
}

algorithm SoftmaxAlgorithm(const std::string& name) {
  static const Table table = {
      {"softmax", algorithm::softmax_accurate},
      {"log_softmax", algorithm::softmax_log},
  };
  return Find(table, name, "softmax");
}

algorithm ResamplingAlgorithm(const std::string& name) {
  static const Table table = {
      {"nearest", algorithm::resampling_nearest},
      {"linear", algorithm::resampling_linear},
  };
  return Find(table, name, "resampling");
}

}  // namespace mxplan
