// Memory descriptors in keys: compared in full, and hashed.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DESC_HASH_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DESC_HASH_H_

#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

namespace mxplan {

// Stricter than ==, for which axes of extent 1 have no strides: oneDNN picks kernels by them.
inline bool SameDesc(const dnnl::memory::desc& a, const dnnl::memory::desc& b) {
  return a == b && a.get_submemory_offset() == b.get_submemory_offset() &&
         a.get_strides() == b.get_strides();
}

inline size_t CombineHash(size_t seed, uint64_t value) {
  return static_cast<size_t>((seed ^ value) * 0x9E3779B97F4A7C15u) ^ (seed >> 29);
}

// Of the dimensions and strides: what else differs between descriptors seldom differs alone.
inline size_t HashDesc(const dnnl::memory::desc& desc) {
  size_t hash = static_cast<size_t>(desc.get_ndims());
  for (int64_t dim : desc.get_dims()) hash = CombineHash(hash, static_cast<uint64_t>(dim));
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return hash;
  for (int64_t stride : desc.get_strides()) hash = CombineHash(hash, static_cast<uint64_t>(stride));
  return hash;
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_DESC_HASH_H_
