// The product of one step; see step_product.h.
#include "onednn/recurrent_training/step_product.h"

#include <algorithm>

#include "memory/buffer.h"
#include "onednn/engine.h"

namespace mxplan::recurrent_training {
namespace {

using dnnl::memory;

memory::desc StridedRows(int64_t rows, int64_t columns, int64_t stride) {
  return {{rows, columns}, memory::data_type::f32, memory::dims{stride, 1}};
}

int64_t BytesOf(const memory::desc& desc) {
  return desc ? static_cast<int64_t>(desc.get_size()) : 0;
}

memory::desc ScratchpadOf(const PrimitivePointer& made) {
  return made->desc.query_md(dnnl::query::exec_arg_md, DNNL_ARG_SCRATCHPAD);
}

StepDescriptor DescriptorOf(const ProductShape& shape) {
  StepDescriptor product;
  product.kind = "matmul";
  product.src = {shape.samples, shape.depth};
  product.weights = {shape.depth, shape.columns};
  product.dst = {shape.samples, shape.columns};
  return product;
}

void Run(const PrimitivePointer& made, dnnl_stream_t stream,
         std::initializer_list<dnnl_exec_arg_t> arguments) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(made->primitive.get(), stream, static_cast<int>(arguments.size()),
                             arguments.begin()),
      "could not execute the product of a recurrent layer's step");
}

}  // namespace

StepProduct::StepProduct(const ProductShape& shape) : shape_(shape) {
  // Weights are [rows, units]: a product with their transpose goes along the units.
  if (shape.transposed) {
    plain_ = {{shape.depth, shape.columns}, memory::data_type::f32, memory::dims{1, shape.depth}};
  } else {
    plain_ = StridedRows(shape.depth, shape.columns, shape.columns);
  }
  const memory::desc src = StridedRows(shape.samples, shape.depth, shape.src_stride);
  const memory::desc dst = StridedRows(shape.samples, shape.columns, shape.columns);
  const memory::desc any = MakeDesc({shape.depth, shape.columns}, memory::data_type::f32, "any");
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  PrimitiveKey key(typeid(dnnl::matmul));
  for (const memory::desc& desc : {src, any, dst}) key.Put(desc);
  key.Put(shape.adds);
  if (shape.adds) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0F);
    attr.set_post_ops(post_ops);
  }
  product_ = GetPrimitive<dnnl::matmul>(key, {"", RefusalsOf(DescriptorOf(shape))}, [&] {
    return dnnl::matmul::primitive_desc(CpuEngine(), src, any, dst, attr);
  });
  const memory::desc wanted = product_->desc.weights_desc();
  if (SamePlacement(wanted, plain_)) return;
  PrimitiveKey packing(typeid(dnnl::reorder));
  packing.Put(plain_);
  packing.Put(wanted);
  packing_ = GetPrimitive<dnnl::reorder>(packing, {}, [&] {
    dnnl::primitive_attr own;
    own.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return dnnl::reorder::primitive_desc(CpuEngine(), plain_, CpuEngine(), wanted, own);
  });
}

int64_t StepProduct::packed_bytes() const {
  return packing_ ? AlignUp(BytesOf(product_->desc.weights_desc())) : 0;
}

int64_t StepProduct::scratchpad_bytes() const {
  const int64_t packing = packing_ ? BytesOf(ScratchpadOf(packing_)) : 0;
  return AlignUp(std::max(packing, BytesOf(ScratchpadOf(product_))));
}

StepProduct::Use::Use(const StepProduct& product, dnnl_stream_t stream, const float* recurrence,
                      char* scratch)
    : product_(product), stream_(stream) {
  const ProductShape& shape = product.shape_;
  const int64_t units = shape.transposed ? shape.depth : shape.columns;
  // oneDNN has no constant memory objects; nothing is written here.
  auto* given = const_cast<float*>(recurrence + shape.first_row * units);
  const dnnl::engine& engine = CpuEngine();
  src_ = memory(StridedRows(shape.samples, shape.depth, shape.src_stride), engine, nullptr);
  dst_ = memory(StridedRows(shape.samples, shape.columns, shape.columns), engine, nullptr);
  weights_ = memory(product.product_->desc.weights_desc(), engine, given);
  char* scratchpad = scratch + product.packed_bytes();
  if (product.packing_) {
    memory plain(product.plain_, engine, given);
    memory own(ScratchpadOf(product.packing_), engine, scratchpad);
    weights_.set_data_handle(scratch);
    Run(product.packing_, stream_,
        {{DNNL_ARG_FROM, plain.get()},
         {DNNL_ARG_TO, weights_.get()},
         {DNNL_ARG_SCRATCHPAD, own.get()}});
  }
  scratchpad_ = memory(ScratchpadOf(product.product_), engine, scratchpad);
}

void StepProduct::Use::Multiply(const float* src, float* dst) {
  src_.set_data_handle(const_cast<float*>(src));
  dst_.set_data_handle(dst);
  Run(product_.product_, stream_,
      {{DNNL_ARG_SRC, src_.get()},
       {DNNL_ARG_WEIGHTS, weights_.get()},
       {DNNL_ARG_DST, dst_.get()},
       {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}});
}

}  // namespace mxplan::recurrent_training
