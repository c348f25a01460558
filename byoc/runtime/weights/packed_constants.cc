// Stored forms; see packed_constants.h.
#include "weights/packed_constants.h"

#include <sstream>

#include "base/error.h"
#include "memory/buffer.h"
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

// The form that a request asks for, one without `packed` if it cannot be stored.
StoredForm FormOf(const ConstantData& constant, const Weights::Request& request) {
  bool whole = request.offset == 0 &&
               static_cast<int64_t>(request.from.get_size()) == constant.bytes &&
               request.packing.kind == Packing::Kind::kReorder;
  if (!whole) return {};
  StoredForm form{request.from.get_dims(), TagOf(request.from), TagOf(request.to)};
  bool named = IsNamed(request.from, form.plain) && IsNamed(request.to, form.packed);
  return named ? form : StoredForm{};
}

// What packs the bytes; the number of the transform goes up when other bytes come of it.
std::string NameOf(const Packing& packing) {
  switch (packing.kind) {
    case Packing::Kind::kReorder:
      return "reorder";
    case Packing::Kind::kReread:
      return "reread";
    case Packing::Kind::kWinograd:
      return Concat("winograd.1 tiles ", winograd::TileSize(packing.variant), " filters ",
                    winograd::FilterSize(packing.variant), " group ", packing.group);
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

ConstantData FormBeside(const Weights::Packed& entry, std::string name) {
  ConstantData form;
  form.dtype = "uint8";
  form.shape = {entry.weights->bytes()};
  form.bytes = form.stored_bytes = entry.weights->bytes();
  form.data = entry.weights->data();
  form.owner = entry.weights;
  form.serves = std::move(name);
  return form;
}

}  // namespace

std::string NameOf(const Weights::Request& request) {
  std::ostringstream out;
  out << request.constant << " at " << request.offset << ' ' << NameOf(request.packing);
  for (const dnnl::memory::desc* desc :
       {&request.from, &request.packing.through, &request.packing.seen, &request.to}) {
    out << "; ";
    if (!PutDesc(&out, *desc)) return "";
  }
  return out.str();
}

void CheckForm(const ConstantData& constant) {
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

bool WantsStoredForm(const ConstantData& constant, const Weights::Request& request) {
  if (request.packing.kind != Packing::Kind::kReorder) return false;
  if (constant.IsPlain()) return SamePlacement(request.from, request.to);
  return request.offset == 0 && SamePlacement(request.from, PlainDesc(constant)) &&
         SamePlacement(request.to, PackedDesc(constant));
}

std::shared_ptr<const char> PlainBytes(const ConstantData& constant) {
  if (constant.IsPlain()) return {constant.owner, constant.data};
  auto buffer = std::make_shared<Buffer>(constant.bytes);
  Reorder(PackedDesc(constant), constant.data, constant.mapped, PlainDesc(constant),
          buffer->data());
  return {buffer, buffer->data()};
}

ConstantData Unpacked(const ConstantData& constant) {
  ConstantData plain = constant;
  std::shared_ptr<const char> bytes = PlainBytes(constant);
  plain.data = bytes.get();
  plain.owner = std::move(bytes);
  plain.stored_bytes = plain.bytes;
  plain.form = {};
  plain.mapped = false;
  return plain;
}

std::vector<ConstantData> PackedConstants(const Weights& weights,
                                          const std::vector<Weights::Packed>& packed,
                                          const std::vector<bool>& inplace) {
  std::vector<ConstantData> constants = weights.constants();
  std::vector<int> wanted(constants.size(), 0);
  for (const Weights::Packed& entry : packed) ++wanted[static_cast<size_t>(entry.request.constant)];
  for (const Weights::Packed& entry : packed) {
    auto number = static_cast<size_t>(entry.request.constant);
    ConstantData& constant = constants[number];
    if (wanted[number] != 1 || inplace[number] || !constant.IsPlain()) continue;
    constant.form = FormOf(constant, entry.request);
    if (constant.IsPlain()) continue;
    constant.data = entry.weights->data();
    constant.stored_bytes = entry.weights->bytes();
    constant.owner = entry.weights;
    constant.mapped = false;
  }
  for (const Weights::Packed& entry : packed) {
    if (!constants[static_cast<size_t>(entry.request.constant)].IsPlain()) continue;
    std::string name = NameOf(entry.request);
    if (!name.empty()) constants.push_back(FormBeside(entry, std::move(name)));
  }
  return constants;
}

}  // namespace mxplan
