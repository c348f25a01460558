// Vectors of MXPLAN_LANES numbers out of float32 or bfloat16 and back; included once for each
// instruction set, behind lanes_impl.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_NUMBERS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_NUMBERS_IMPL_H_

#include <cstdint>
#include <cstring>

#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/shorts_impl.h"

namespace mxplan {
namespace {

// A whole vector of either type.
MXPLAN_INLINE Vec LoadAll(const float* from) { return Load(from); }
MXPLAN_INLINE Vec LoadAll(const Short* from) {
  Shorts numbers;
  std::memcpy(&numbers, from, sizeof(numbers));
  return Widened(InLowHalves(numbers));
}
MXPLAN_INLINE void StoreAll(float* to, Vec vec) { Store(to, vec); }
MXPLAN_INLINE void StoreAll(Short* to, Vec vec) {
  Shorts numbers = Rounded(vec);
  std::memcpy(to, &numbers, sizeof(numbers));
}

// The first `count` numbers, fewer than a vector has, and 0 behind them.
MXPLAN_INLINE Vec LoadFirst(const float* from, int64_t count) { return LoadSome(from, count); }
MXPLAN_INLINE Vec LoadFirst(const Short* from, int64_t count) {
  return Widened(LoadShort(from, count));
}
MXPLAN_INLINE void StoreFirst(float* to, int64_t count, Vec vec) { StoreSome(to, vec, count); }
MXPLAN_INLINE void StoreFirst(Short* to, int64_t count, Vec vec) { StoreShort(to, count, vec); }

// A whole vector, or at the end of numbers that stand side by side a part of one.
template <bool kWhole>
struct Some {
  int64_t count;
  template <typename Type>
  MXPLAN_INLINE Vec From(const Type* at) const {
    if constexpr (kWhole) {
      return LoadAll(at);
    } else {
      return LoadFirst(at, count);
    }
  }
  template <typename Type>
  MXPLAN_INLINE void To(Type* at, Vec vec) const {
    if constexpr (kWhole) {
      StoreAll(at, vec);
    } else {
      StoreFirst(at, count, vec);
    }
  }
};

}  // namespace
}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_NUMBERS_IMPL_H_
