// One builder for each kind of step, each in the file of its family; registry.cc is the table of
// them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STEPS_BUILDERS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STEPS_BUILDERS_H_

#include "onednn/builder/step_builder.h"

namespace mxplan {

// Builds a step on empty tensors whatever its kind; false, and nothing done, for all other steps.
bool BuildEmpty(StepBuilder* b);
// Adds dst = src, followed by the step's post-ops; `desc` is that of src.
void AddIdentity(StepBuilder* b, int src, const dnnl::memory::desc& desc);

void BuildConvolution(StepBuilder* b);
void BuildDeconvolution(StepBuilder* b);
void BuildConvolutionBackwardWeights(StepBuilder* b);
void BuildMatMul(StepBuilder* b);
void BuildInnerProduct(StepBuilder* b);
void BuildPooling(StepBuilder* b);
void BuildPoolingBackward(StepBuilder* b);
void BuildBatchNormalization(StepBuilder* b);
void BuildBatchNormalizationTraining(StepBuilder* b);
void BuildBatchNormalizationBackward(StepBuilder* b);
void BuildLayerNormalization(StepBuilder* b);
void BuildLayerNormalizationBackward(StepBuilder* b);
void BuildRmsNormalization(StepBuilder* b);
void BuildRotary(StepBuilder* b);
void BuildLrn(StepBuilder* b);
void BuildSoftmax(StepBuilder* b);
// Whether the logarithm of a softmax runs in our own kernel, and the step so.
bool HasOwnLogSoftmax(StepBuilder* b);
void BuildLogSoftmax(StepBuilder* b);
void BuildEltwise(StepBuilder* b);
void BuildBinary(StepBuilder* b);
void BuildPRelu(StepBuilder* b);
void BuildReduction(StepBuilder* b);
void BuildRecurrent(StepBuilder* b);
void BuildRecurrentTraining(StepBuilder* b);
void BuildRecurrentBackward(StepBuilder* b);
void BuildAttention(StepBuilder* b);
void BuildConcat(StepBuilder* b);
void BuildShuffle(StepBuilder* b);
void BuildResampling(StepBuilder* b);
void BuildPad(StepBuilder* b);
void BuildSlice(StepBuilder* b);
void BuildReorder(StepBuilder* b);
void BuildQuantization(StepBuilder* b);
void BuildDynamicQuantization(StepBuilder* b);
void BuildFewBits(StepBuilder* b);
void BuildGroupedProduct(StepBuilder* b);
void BuildSqueezeExcite(StepBuilder* b);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_STEPS_BUILDERS_H_
