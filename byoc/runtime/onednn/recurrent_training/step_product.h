// The product that every step of a recurrent layer waits for: a state, or its gradient, times the
// recurrent weights, which are packed once for all steps.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_STEP_PRODUCT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_STEP_PRODUCT_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "onednn/builder/step_builder.h"

namespace mxplan::recurrent_training {

// The extents and strides of a product, in numbers of float32.
struct ProductShape {
  int64_t samples = 0, depth = 0, columns = 0;
  int64_t src_stride = 0;   // between samples
  int64_t first_row = 0;    // of the recurrent weights [rows, units] that take part
  bool transposed = false;  // src [samples, units] times their transpose
  bool adds = false;        // to what dst holds
};

class StepProduct {
 public:
  explicit StepProduct(const ProductShape& shape);

  // Bytes of the packed weights; 0 where the plain ones serve.
  int64_t packed_bytes() const;
  int64_t scratchpad_bytes() const;

  // One use, for one direction: `scratch` has room for the packed weights, then for the scratchpad.
  class Use {
   public:
    Use(const StepProduct& product, dnnl_stream_t stream, const float* recurrence, char* scratch);
    // dst [samples, columns], dense.
    void Multiply(const float* src, float* dst);

   private:
    const StepProduct& product_;
    dnnl_stream_t stream_;
    dnnl::memory src_, weights_, dst_, scratchpad_;
  };

 private:
  ProductShape shape_;
  dnnl::memory::desc plain_;  // the weights as they are given
  PrimitivePointer product_, packing_;
};

}  // namespace mxplan::recurrent_training

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_RECURRENT_TRAINING_STEP_PRODUCT_H_
