// Keys of primitives, and their cache; see primitive_cache.h.
#include "onednn/primitives/primitive_cache.h"

#include <cstring>
#include <functional>

#include "base/error.h"
#include "onednn/desc_hash.h"
#include "onednn/engine.h"
#include "onednn/process_state.h"

namespace mxplan {

PrimitiveKey::PrimitiveKey(std::type_index kind) : kind_(kind) {
  const ProcessState state = CurrentState();
  Put(CpuEngine().get_kind());
  for (int64_t setting : state.settings) Put(setting);
  Put(state.threads);
  Put(state.parallel);
}

void PrimitiveKey::Put(float number) {
  uint32_t bits;  // so that -0 and NaN are values like others
  std::memcpy(&bits, &number, sizeof(bits));
  Put(bits);
}

void PrimitiveKey::Put(const std::vector<dnnl::memory::desc>& descs) {
  Put(descs.size());
  for (const dnnl::memory::desc& desc : descs) Put(desc);
}

void PrimitiveKey::Put(const Choice& choice) {
  Put(choice.preferred);
  Put(choice.refusals.size());
  for (const Refusal& refusal : choice.refusals) {
    Put(refusal.implementation);
    Put(refusal.pattern);
    Put(refusal.reason);
    Put(refusal.with_epilogue);
  }
}

bool PrimitiveKey::Same(const Field& a, const Field& b) {
  const auto* desc = std::get_if<dnnl::memory::desc>(&a);
  const auto* other = std::get_if<dnnl::memory::desc>(&b);
  return desc && other ? SameDesc(*desc, *other) : a == b;
}

bool PrimitiveKey::operator==(const PrimitiveKey& other) const {
  if (kind_ != other.kind_ || fields_.size() != other.fields_.size()) return false;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!Same(fields_[i], other.fields_[i])) return false;
  }
  return true;
}

size_t PrimitiveKey::Hash() const {
  size_t hash = kind_.hash_code();
  for (const Field& field : fields_) {
    if (const auto* number = std::get_if<int64_t>(&field)) {
      hash = CombineHash(hash, static_cast<uint64_t>(*number));
    } else if (const auto* dims = std::get_if<Dims>(&field)) {
      for (int64_t dim : *dims) hash = CombineHash(hash, static_cast<uint64_t>(dim));
    } else if (const auto* text = std::get_if<std::string>(&field)) {
      hash = CombineHash(hash, std::hash<std::string>()(*text));
    } else {
      hash = CombineHash(hash, HashDesc(std::get<dnnl::memory::desc>(field)));
    }
  }
  return hash;
}

PrimitiveCache& ThePrimitiveCache() {
  // Never destroyed: modules that outlive main's statics use it.
  static auto* cache = new PrimitiveCache({256, INT64_MAX});
  return *cache;
}

bool IsRefusal(const dnnl::error& error) {
  return error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
}

void ThrowAllRefused(const std::vector<RefusedImplementation>& refused) {
  ThrowUnsupported("every implementation that oneDNN has for it is refused: ", ToText(refused));
}

CacheStatistics PrimitiveStatistics() { return ThePrimitiveCache().statistics(); }

void SetPrimitiveCapacity(CacheCapacity capacity) { ThePrimitiveCache().SetCapacity(capacity); }

}  // namespace mxplan
