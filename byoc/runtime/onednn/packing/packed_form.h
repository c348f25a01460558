// Constants as oneDNN's primitives and the kernels around them want them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_PACKED_FORM_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_PACKED_FORM_H_

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "library/form.h"
#include "onednn/packing/packing.h"

namespace mxplan {

// Bytes that are plain in `from` brought into `to`, by way of a packing.
class PackedForm final : public Form {
 public:
  PackedForm(dnnl::memory::desc from, dnnl::memory::desc to, Packing packing)
      : from_(std::move(from)), to_(std::move(to)), packing_(std::move(packing)) {}

  int64_t source_bytes() const override { return static_cast<int64_t>(from_.get_size()); }
  int64_t bytes() const override { return static_cast<int64_t>(to_.get_size()); }
  bool Equals(const Form& other) const override;
  std::string Name() const override;
  bool IsPlain() const override;
  bool IsStored(const ConstantData& constant) const override;
  StoredForm AsStored() const override;
  void Pack(const char* plain, bool mapped, char* packed, PackingScratch* scratch) const override;

 private:
  dnnl::memory::desc from_, to_;
  Packing packing_;
};

// Throws InvalidInput or Unsupported unless a constant's form is one that its bytes can be in.
void CheckStoredForm(const ConstantData& constant);

// Brings a constant that is stored in a form of its own back into the plain order.
void UnpackStored(const ConstantData& constant, char* plain);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PACKING_PACKED_FORM_H_
