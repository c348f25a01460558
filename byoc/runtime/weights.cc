// Prepacking of constants; see weights.h.
#include "weights.h"

#include "engine.h"
#include "error.h"
#include "layout.h"

namespace mxplan {
namespace {

bool Same(const Weights::Request& a, const Weights::Request& b) {
  return a.constant == b.constant && a.offset == b.offset && a.from == b.from && a.to == b.to &&
         a.through == b.through && a.seen == b.seen;
}

void Reorder(const dnnl::memory::desc& from, const char* src, const dnnl::memory::desc& to,
             char* dst) {
  dnnl::memory source(from, CpuEngine(), const_cast<char*>(src));  // oneDNN has no const memory
  dnnl::memory target(to, CpuEngine(), dst);
  dnnl::reorder(source, target).execute(ThreadStream(), source, target);
  ThreadStream().wait();
}

void Convert(const Weights::Request& request, const char* src, char* dst) {
  if (request.seen.is_zero()) return Reorder(request.from, src, request.to, dst);
  if (SamePlacement(request.from, request.through)) {
    return Reorder(request.seen, src, request.to, dst);
  }
  Buffer between(static_cast<int64_t>(request.through.get_size()));
  Reorder(request.from, src, request.through, between.data());
  Reorder(request.seen, between.data(), request.to, dst);
}

}  // namespace

const char* Weights::Source(const Request& request) const {
  return constants_.at(static_cast<size_t>(request.constant)).data + request.offset;
}

bool Weights::UsableInPlace(const Request& request) const {
  return SamePlacement(request.from, request.to) &&
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
    Convert(entry.request, Source(entry.request), next);
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
