// The caches of the process as Python sees them.
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "base/error.h"
#include "ffi/errors.h"
#include "onednn/primitives/primitive_cache.h"
#include "weights/weights.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

CacheStatistics StatisticsOf(const std::string& cache) {
  if (cache == "primitives") return PrimitiveStatistics();
  if (cache == "weights") return PackedWeightsStatistics();
  ThrowInvalidInput("no cache ", cache, "; expected primitives or weights");
}

ffi::Map<ffi::String, int64_t> CacheCounters(const ffi::String& cache) {
  return Guard([&] {
    CacheStatistics s = StatisticsOf(cache);
    return ffi::Map<ffi::String, int64_t>({{"hits", s.hits},
                                           {"misses", s.misses},
                                           {"evictions", s.evictions},
                                           {"entries", s.entries},
                                           {"bytes", s.bytes},
                                           {"most_entries", s.capacity.entries},
                                           {"most_bytes", s.capacity.bytes}});
  });
}

void SetCacheCapacity(const ffi::String& cache, int64_t entries, int64_t bytes) {
  Guard([&] {
    StatisticsOf(cache);  // the name is known
    (cache == "primitives" ? SetPrimitiveCapacity : SetPackedWeightsCapacity)({entries, bytes});
  });
}

// Limits the primitives that oneDNN itself keeps, which are dead weight where they are in our cache
// too.
void SetLibraryCache(int64_t entries) {
  dnnl::set_primitive_cache_capacity(static_cast<int>(entries));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("tvm_mxplan.onednn.cache_counters", CacheCounters)
      .def("tvm_mxplan.onednn.set_cache_capacity", SetCacheCapacity)
      .def("tvm_mxplan.onednn.set_library_cache", SetLibraryCache);
}

}  // namespace
}  // namespace mxplan
