// Forms of constants, and those they are stored in; see packed_form.h.
#include "onednn/packing/packed_form.h"

#include <sstream>
#include <vector>

#include "base/error.h"
#include "onednn/desc_hash.h"
#include "onednn/engine.h"
#include "onednn/layout.h"
#include "onednn/packing/mapped_reorder.h"

namespace mxplan {
namespace {

dnnl::memory::desc PlainDesc(const ConstantData& constant) {
  return MakeDesc(constant.form.dims, ParseDtype(constant.dtype), constant.form.plain);
}

dnnl::memory::desc PackedDesc(const ConstantData& constant) {
  return MakeDesc(constant.form.dims, ParseDtype(constant.dtype), constant.form.packed);
}

// True if `tag` says all there is to say about a descriptor.
bool IsNamed(const dnnl::memory::desc& desc, const std::string& tag) {
  return tag != "any" && tag != "opaque" && desc.get_submemory_offset() == 0 && IsDense(desc);
}

// The name of a packing; the number of a transform goes up when other bytes come of it.
std::string NameOf(const Packing& packing) {
  switch (packing.kind) {
    case Packing::Kind::kReorder:
      return "reorder";
    case Packing::Kind::kReread:
      return "reread";
    case Packing::Kind::kWinograd:
      return Concat("winograd.1 tiles ", winograd::TileSize(packing.variant), " filters ",
                    winograd::FilterSize(packing.variant), " group ", packing.group,
                    packing.turned ? " turned" : "");
  }
  return "";
}

// False for descriptors that do not say where each element stands.
bool PutDesc(std::ostream* out, const dnnl::memory::desc& desc) {
  if (desc.is_zero()) return true;
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return false;
  auto put = [&](const char* name, const std::vector<int64_t>& numbers) {
    *out << ' ' << name;
    for (int64_t number : numbers) *out << ' ' << number;
  };
  *out << static_cast<int>(desc.get_data_type());
  put("dims", desc.get_dims());
  put("padded", desc.get_padded_dims());
  put("strides", desc.get_strides());
  put("blocks", desc.get_inner_blks());
  put("of", desc.get_inner_idxs());
  put("bytes", {desc.get_submemory_offset(), static_cast<int64_t>(desc.get_size())});
  return true;
}

}  // namespace

bool PackedForm::Equals(const Form& other) const {
  const auto* form = dynamic_cast<const PackedForm*>(&other);
  return form && SameDesc(from_, form->from_) && SameDesc(to_, form->to_) &&
         packing_ == form->packing_;
}

std::string PackedForm::Name() const {
  std::ostringstream out;
  out << NameOf(packing_);
  for (const dnnl::memory::desc* desc : {&from_, &packing_.through, &packing_.seen, &to_}) {
    out << "; ";
    if (!PutDesc(&out, *desc)) return "";
  }
  return out.str();
}

bool PackedForm::IsPlain() const {
  return packing_.kind == Packing::Kind::kReorder && SamePlacement(from_, to_);
}

bool PackedForm::IsStored(const ConstantData& constant) const {
  return packing_.kind == Packing::Kind::kReorder && SamePlacement(from_, PlainDesc(constant)) &&
         SamePlacement(to_, PackedDesc(constant));
}

StoredForm PackedForm::AsStored() const {
  if (packing_.kind != Packing::Kind::kReorder) return {};
  StoredForm form{from_.get_dims(), TagOf(from_), TagOf(to_)};
  bool named = IsNamed(from_, form.plain) && IsNamed(to_, form.packed);
  return named ? form : StoredForm{};
}

void PackedForm::Pack(const char* plain, bool mapped, char* packed, PackingScratch* scratch) const {
  Translated([&] { PackConstant(packing_, from_, plain, mapped, to_, packed, scratch); });
}

void CheckStoredForm(const ConstantData& constant) {
  dnnl::memory::desc plain = PlainDesc(constant), packed = PackedDesc(constant);
  for (const dnnl::memory::desc& desc : {plain, packed}) {
    if (desc.get_format_kind() != dnnl::memory::format_kind::blocked || !IsDense(desc)) {
      ThrowInvalidInput("a constant stored in no layout");
    }
  }
  if (static_cast<int64_t>(plain.get_size()) != constant.bytes ||
      static_cast<int64_t>(packed.get_size()) != constant.stored_bytes) {
    ThrowInvalidInput("a constant of ", constant.bytes, " bytes stored as ", constant.form.packed,
                      " in ", constant.stored_bytes);
  }
}

void UnpackStored(const ConstantData& constant, char* plain) {
  Reorder(PackedDesc(constant), constant.data, constant.mapped, PlainDesc(constant), plain);
}

}  // namespace mxplan
