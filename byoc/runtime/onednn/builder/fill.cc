// Filling a tensor with one number; see fill.h.
#include "onednn/builder/fill.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/physical_layout.h"

namespace mxplan {
namespace {

// The bytes of a number in a type; throws Unsupported for types that nobody fills with numbers.
std::vector<char> BytesOf(float value, dnnl::memory::data_type type) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (type == dnnl::memory::data_type::bf16) {
    // To nearest, ties to even; the only NaN that comes here has no lower digits.
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  } else if (type != dnnl::memory::data_type::f32) {
    ThrowUnsupported("a fill of ", value, " in a type other than float32 and bfloat16");
  }
  const char* first = reinterpret_cast<const char*>(&bits);  // the lowest bytes come first
  return {first, first + dnnl::memory::data_type_size(type)};
}

class FillStage final : public MemoryStage {
 public:
  FillStage(const MemoryArgument& dst, float value)
      : MemoryStage({dst}), desc_(dst.desc), value_(value) {
    if (value != 0) number_ = BytesOf(value, desc_.get_data_type());
    dims_ = desc_.get_dims();
    padded_ = desc_.get_padded_dims();
    strides_ = desc_.get_strides();
    blocks_ = desc_.get_inner_blks();
    axes_ = desc_.get_inner_idxs();
    bytes_ = desc_.get_size();
  }

  void Execute(dnnl_stream_t stream, const std::vector<dnnl_exec_arg_t>& memories) const override {
    dnnl::error::wrap_c_api(dnnl_stream_wait(stream), "could not wait for a stream");
    void* data = nullptr;
    dnnl::error::wrap_c_api(dnnl_memory_get_data_handle(memories[0].memory, &data),
                            "could not get a memory's address");
    auto* bytes = static_cast<char*>(data);
    if (value_ == 0 || dims_ != padded_) std::memset(data, 0, bytes_);
    if (value_ == 0) return;
    if (dims_ == padded_) {
      for (size_t at = 0; at < bytes_; at += number_.size()) Put(bytes + at);
    } else {
      FillLogical(bytes, 0, Dims(dims_.size(), 0));
    }
  }

 private:
  void Put(char* place) const { std::memcpy(place, number_.data(), number_.size()); }

  void FillLogical(char* data, size_t axis, Dims position) const {
    if (axis == dims_.size()) {
      Put(data + Offset(std::move(position)) * static_cast<int64_t>(number_.size()));
      return;
    }
    for (position[axis] = 0; position[axis] < dims_[axis]; ++position[axis]) {
      FillLogical(data, axis + 1, position);
    }
  }

  int64_t Offset(Dims position) const {
    int64_t offset = 0;
    int64_t stride = 1;
    for (size_t i = blocks_.size(); i-- > 0;) {  // the last block is the innermost
      int64_t& index = position[axes_[i]];
      offset += index % blocks_[i] * stride;
      index /= blocks_[i];
      stride *= blocks_[i];
    }
    for (size_t i = 0; i < position.size(); ++i) offset += position[i] * strides_[i];
    return offset;
  }

  dnnl::memory::desc desc_;
  float value_;
  std::vector<char> number_;  // the bytes of the value; empty for zero
  Dims dims_, padded_, strides_, blocks_, axes_;
  size_t bytes_;
};

}  // namespace

std::unique_ptr<const Stage> MakeFill(const MemoryArgument& dst, float value) {
  return std::make_unique<FillStage>(dst, value);
}

}  // namespace mxplan
