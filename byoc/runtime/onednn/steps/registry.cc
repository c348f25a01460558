// The table of step kinds, and the one place where oneDNN's refusals become errors.
#include <string_view>

#include "base/error.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

struct Entry {
  std::string_view kind;
  void (*build)(StepBuilder* b);
};

constexpr Entry kBuilders[] = {
    {"convolution", BuildConvolution},
    {"deconvolution", BuildDeconvolution},
    {"convolution_backward_weights", BuildConvolutionBackwardWeights},
    {"matmul", BuildMatMul},
    {"inner_product", BuildInnerProduct},
    {"few_bits_product", BuildFewBits},
    {"grouped_product", BuildGroupedProduct},
    {"pooling", BuildPooling},
    {"pooling_backward", BuildPoolingBackward},
    {"batch_normalization", BuildBatchNormalization},
    {"batch_normalization_training", BuildBatchNormalizationTraining},
    {"batch_normalization_backward", BuildBatchNormalizationBackward},
    {"layer_normalization", BuildLayerNormalization},
    {"layer_normalization_backward", BuildLayerNormalizationBackward},
    {"rms_normalization", BuildRmsNormalization},
    {"rotary", BuildRotary},
    {"squeeze_excite", BuildSqueezeExcite},
    {"lrn", BuildLrn},
    {"softmax", BuildSoftmax},
    {"eltwise", BuildEltwise},
    {"binary", BuildBinary},
    {"prelu", BuildPRelu},
    {"reduction", BuildReduction},
    {"recurrent", BuildRecurrent},
    {"recurrent_training", BuildRecurrentTraining},
    {"recurrent_backward", BuildRecurrentBackward},
    {"attention", BuildAttention},
    {"concat", BuildConcat},
    {"shuffle", BuildShuffle},
    {"resampling", BuildResampling},
    {"pad", BuildPad},
    {"slice", BuildSlice},
    {"reorder", BuildReorder},
    {"quantization", BuildQuantization},
    {"dynamic_quantization", BuildDynamicQuantization},
};

}  // namespace

Executable BuildExecutable(const Step& step, DescribedProgram* program, bool lists_alternatives) {
  try {
    for (const Entry& entry : kBuilders) {
      if (entry.kind != step.kind) continue;
      StepBuilder builder(step, program, lists_alternatives);
      if (!BuildEmpty(&builder)) entry.build(&builder);
      return builder.Take();
    }
    ThrowUnsupported("unknown kind of step");
  } catch (const dnnl::error& error) {
    ThrowUnsupported("oneDNN ", error.what(), " (status ", static_cast<int>(error.status), ")");
  }
}

}  // namespace mxplan
