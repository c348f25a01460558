// Prepacking of constants and the cache of packed forms; see weights.h.
#include "weights/weights.h"

#include <algorithm>

#include "base/error.h"
#include "memory/buffer.h"
#include "weights/packed_constants.h"
#include "weights/packing_memory.h"

namespace mxplan {
namespace {

// The plain bytes are compared by their digest (taken with a seed of this process), the rest in
// full.
struct PackedKey {
  Digest source;
  std::shared_ptr<const Form> form;
  bool operator==(const PackedKey& other) const {
    return source == other.source && form->Equals(*other.form);
  }
};

struct PackedKeyHash {
  size_t operator()(const PackedKey& key) const { return static_cast<size_t>(key.source[0]); }
};

using PackedCache = KeyedCache<PackedKey, PackedWeights, PackedKeyHash>;

PackedCache& Cache() {
  // Never destroyed: modules that outlive main's statics use it.
  static auto* cache = new PackedCache({4096, int64_t{128} << 20});
  return *cache;
}

int64_t SmallBytes(const std::vector<Weights::Request>& requests) {
  int64_t bytes = 0;
  for (const Weights::Request& request : requests) {
    int64_t size = request.form->bytes();
    if (PackingMemory::IsSmall(size)) bytes += AlignUp(size);
  }
  return bytes;
}

}  // namespace

Weights::Weights(std::vector<ConstantData> constants, const Library& library, Sharing sharing)
    : library_(library), sharing_(sharing) {
  for (ConstantData& constant : constants) {
    (constant.serves.empty() ? constants_ : forms_).push_back(std::move(constant));
  }
}

bool Weights::Request::operator==(const Request& other) const {
  return constant == other.constant && offset == other.offset && form->Equals(*other.form);
}

const char* Weights::Source(const Request& request) const {
  return constants_.at(static_cast<size_t>(request.constant)).data + request.offset;
}

bool Weights::UsableInPlace(const Request& request) const {
  return WantsStoredForm(constants_.at(static_cast<size_t>(request.constant)), request) &&
         reinterpret_cast<uintptr_t>(Source(request)) % kAlignment == 0;
}

const char* Weights::Plain(size_t constant) {
  const ConstantData& stored = constants_.at(constant);
  if (stored.IsPlain()) return stored.data;
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<const char>& plain = plain_[constant];
  if (!plain) plain = PlainBytes(stored, library_);
  return plain.get();
}

const char* Weights::Resident(size_t constant) {
  const char* plain = Plain(constant);
  const MemorySpace& memory = library_.memory();
  if (memory.kind() == MemorySpace::Kind::kHost) return plain;
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<const char>& resident = resident_[constant];
  if (!resident) resident = memory.Copied(plain, constants_.at(constant).bytes);
  return resident.get();
}

std::shared_ptr<const PackedWeights> Weights::Stored(const Request& request) const {
  if (forms_.empty()) return nullptr;
  std::string name = NameOf(request);
  for (const ConstantData& form : forms_) {
    bool fits = form.IsPlain() && form.bytes == request.form->bytes();
    if (form.serves != name || !fits) continue;
    if (reinterpret_cast<uintptr_t>(form.data) % kAlignment != 0) continue;
    return std::make_shared<const PackedWeights>(std::shared_ptr<const char>(form.owner, form.data),
                                                 form.bytes, form.mapped);
  }
  return nullptr;
}

Digest Weights::DigestOf(const Request& request, const char* view, bool mapped) {
  int64_t bytes = request.form->source_bytes();
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Known& known : digests_) {
    if (known.constant == request.constant && known.offset == request.offset &&
        known.bytes == bytes) {
      return known.digest;
    }
  }
  Digester digester(ProcessSeed());
  for (int64_t begin = 0; begin < bytes; begin += kSliceBytes) {
    int64_t slice = std::min(kSliceBytes, bytes - begin);
    digester.Add(view + begin, static_cast<size_t>(slice));
    if (mapped && bytes > kSliceBytes) DropPages(view + begin, slice);
  }
  digests_.push_back({request.constant, request.offset, bytes, digester.Take()});
  return digests_.back().digest;
}

std::vector<Weights::Packed> Weights::Pack(const std::vector<Request>& requests) {
  std::vector<Request> needed;
  std::vector<Packed> packed;
  for (const Request& request : requests) {
    auto same = [&](const Packed& entry) { return entry.request == request; };
    bool queued = std::find(needed.begin(), needed.end(), request) != needed.end() ||
                  std::any_of(packed.begin(), packed.end(), same);
    if (queued || UsableInPlace(request)) continue;
    if (auto stored = Stored(request)) {
      packed.push_back({request, std::move(stored)});
    } else {
      needed.push_back(request);
    }
  }
  PackingMemory memory(SmallBytes(needed));
  PackingScratch scratch;
  for (const Request& request : needed) {
    const ConstantData& constant = constants_[static_cast<size_t>(request.constant)];
    std::shared_ptr<const char> plain = PlainBytes(constant, library_);
    const char* view = plain.get() + request.offset;
    bool mapped = constant.mapped && constant.IsPlain();
    auto make = [&] {
      int64_t bytes = request.form->bytes();
      std::shared_ptr<char> data = memory.Allocate(bytes);
      request.form->Pack(view, mapped, data.get(), &scratch);
      return std::make_shared<const PackedWeights>(std::move(data), bytes);
    };
    if (sharing_ == Sharing::kNone) {
      packed.push_back({request, make()});
      continue;
    }
    PackedKey key{DigestOf(request, view, mapped), request.form};
    packed.push_back({request, Cache().GetOrMake(key, make)});
  }
  return packed;
}

CacheStatistics PackedWeightsStatistics() { return Cache().statistics(); }

void SetPackedWeightsCapacity(CacheCapacity capacity) { Cache().SetCapacity(capacity); }

}  // namespace mxplan
