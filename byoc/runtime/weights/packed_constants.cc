// Stored forms; see packed_constants.h.
#include "weights/packed_constants.h"

#include <utility>

#include "base/error.h"
#include "memory/buffer.h"

namespace mxplan {
namespace {

// The form that a request asks for, one without `packed` if it cannot be stored.
StoredForm FormOf(const ConstantData& constant, const Weights::Request& request) {
  bool whole = request.offset == 0 && request.form->source_bytes() == constant.bytes;
  return whole ? request.form->AsStored() : StoredForm{};
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
  std::string form = request.form->Name();
  return form.empty() ? "" : Concat(request.constant, " at ", request.offset, ' ', form);
}

bool WantsStoredForm(const ConstantData& constant, const Weights::Request& request) {
  if (constant.IsPlain()) return request.form->IsPlain();
  return request.offset == 0 && request.form->IsStored(constant);
}

std::shared_ptr<const char> PlainBytes(const ConstantData& constant, const Library& library) {
  if (constant.IsPlain()) return {constant.owner, constant.data};
  auto buffer = std::make_shared<Buffer>(constant.bytes);
  library.Unpack(constant, buffer->data());
  return {buffer, buffer->data()};
}

ConstantData Unpacked(const ConstantData& constant, const Library& library) {
  ConstantData plain = constant;
  std::shared_ptr<const char> bytes = PlainBytes(constant, library);
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
