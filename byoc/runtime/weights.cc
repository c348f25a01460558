// Prepacking of constants; see weights.h.
#include "weights.h"

#include "error.h"
#include "layout.h"

namespace mxplan {
namespace {

bool Same(const Weights::Request& a, const Weights::Request& b) {
  return a.constant == b.constant && a.offset == b.offset && a.from == b.from && a.to == b.to &&
         a.packing == b.packing;
}

}  // namespace

const char* Weights::Source(const Request& request) const {
  return constants_.at(static_cast<size_t>(request.constant)).data + request.offset;
}

bool Weights::UsableInPlace(const Request& request) const {
  return request.packing.kind == Packing::Kind::kReorder &&
         SamePlacement(request.from, request.to) &&
         reinterpret_cast<uintptr_t>(Source(request)) % kAlignment == 0;
}

const char* Weights::Find(const Request& request) const {
  for (const Entry& entry : entries_) {
    if (Same(entry.request, request)) return entry.data;
  }
  return nullptr;
}

void Weights::Pack(const std::vector<Request>& requests) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Entry> missing;
  int64_t bytes = 0;
  for (const Request& request : requests) {
    bool queued = Find(request) != nullptr;
    for (const Entry& entry : missing) queued = queued || Same(entry.request, request);
    if (queued || UsableInPlace(request)) continue;
    missing.push_back({request, nullptr});
    bytes += AlignUp(static_cast<int64_t>(request.to.get_size()));
  }
  if (missing.empty()) return;
  Buffer buffer(bytes);  // one block for all, so that huge pages fit
  char* next = buffer.data();
  for (Entry& entry : missing) {
    const Request& request = entry.request;
    PackConstant(request.packing, request.from, Source(request), request.to, next);
    entry.data = next;
    next += AlignUp(static_cast<int64_t>(entry.request.to.get_size()));
  }
  entries_.insert(entries_.end(), missing.begin(), missing.end());
  buffers_.push_back(std::move(buffer));
  packed_bytes_ += bytes;
}

const char* Weights::Get(const Request& request) const {
  if (UsableInPlace(request)) return Source(request);
  std::lock_guard<std::mutex> lock(mutex_);
  const char* data = Find(request);
  if (!data) ThrowInternal("constant ", request.constant, " was not packed");
  return data;
}

int64_t Weights::packed_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return packed_bytes_;
}

}  // namespace mxplan
