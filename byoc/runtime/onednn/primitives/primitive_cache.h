// Primitives by what they are made of, shared by all modules and threads of the process.
//
// Memory that changes from call to call (scratchpads, arguments) is the caller's, so one primitive
// runs in many contexts at once.  What oneDNN refused is remembered too, and refused again without
// asking.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_PRIMITIVE_CACHE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_PRIMITIVE_CACHE_H_

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "base/keyed_cache.h"
#include "onednn/layout.h"
#include "onednn/primitives/implementation_choice.h"

namespace mxplan {

// Everything that decides which primitive comes out; compared in full.
class PrimitiveKey {
 public:
  // The kind is the primitive's C++ type.  Reads what the process sets: threads, instruction set.
  explicit PrimitiveKey(std::type_index kind);

  // The parts of the primitive's descriptor, in order.
  void Put(const dnnl::memory::desc& desc) { fields_.emplace_back(desc); }
  void Put(const Dims& dims) { fields_.emplace_back(dims); }
  void Put(const std::string& text) { fields_.emplace_back(text); }
  void Put(float number);
  void Put(const std::vector<dnnl::memory::desc>& descs);
  void Put(const Choice& choice);
  template <typename T>
  std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>> Put(T number) {
    fields_.emplace_back(static_cast<int64_t>(number));
  }

  bool operator==(const PrimitiveKey& other) const;
  size_t Hash() const;

 private:
  using Field = std::variant<int64_t, Dims, std::string, dnnl::memory::desc>;
  static bool Same(const Field& a, const Field& b);

  std::type_index kind_;
  std::vector<Field> fields_;
};

struct CachedPrimitive {
  dnnl::primitive_desc_base desc;
  dnnl::primitive primitive;
  std::optional<dnnl::error> failure;          // then the others are empty
  std::vector<RefusedImplementation> refused;  // passed over; without a primitive: all there are

  int64_t bytes() const { return 0; }  // oneDNN does not tell: primitives are bounded by count
};

using PrimitivePointer = std::shared_ptr<const CachedPrimitive>;

// Finds the primitive or makes it: `describe` returns its Primitive::primitive_desc, and `choice`,
// which becomes part of the key, says which implementation of those.  Throws dnnl::error where
// oneDNN refuses, Unsupported where every implementation is refused.
template <typename Primitive, typename Describe>
PrimitivePointer GetPrimitive(PrimitiveKey key, const Choice& choice, const Describe& describe);

CacheStatistics PrimitiveStatistics();
void SetPrimitiveCapacity(CacheCapacity capacity);

// --- implementation

struct PrimitiveKeyHash {
  size_t operator()(const PrimitiveKey& key) const { return key.Hash(); }
};
using PrimitiveCache = KeyedCache<PrimitiveKey, CachedPrimitive, PrimitiveKeyHash>;
PrimitiveCache& ThePrimitiveCache();

// Whether asking again would give the same answer: refusals yes, a lack of memory no.
bool IsRefusal(const dnnl::error& error);

// Throws Unsupported, with what was refused and why.
[[noreturn]] void ThrowAllRefused(const std::vector<RefusedImplementation>& refused);

template <typename Primitive, typename Describe>
PrimitivePointer GetPrimitive(PrimitiveKey key, const Choice& choice, const Describe& describe) {
  key.Put(choice);
  auto make = [&]() -> PrimitivePointer {
    try {
      auto picked = Pick(choice, describe);
      dnnl::primitive primitive;
      if (picked.found) primitive = Primitive(picked.desc);
      return std::make_shared<CachedPrimitive>(
          CachedPrimitive{picked.desc, primitive, {}, picked.refused});
    } catch (const dnnl::error& error) {
      if (!IsRefusal(error)) throw;
      return std::make_shared<CachedPrimitive>(CachedPrimitive{{}, {}, error, {}});
    }
  };
  PrimitivePointer found = ThePrimitiveCache().GetOrMake(key, make);
  if (found->failure) throw dnnl::error(*found->failure);
  if (!found->primitive) ThrowAllRefused(found->refused);
  return found;
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_PRIMITIVE_CACHE_H_
