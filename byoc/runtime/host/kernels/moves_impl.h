// Selection, copies, casts, and elements by their indices.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_MOVES_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_MOVES_IMPL_H_

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

template <typename T>
void SelectLoop(Strided condition, Strided a, Strided b, void* dst, int64_t count) {
  const auto* c = static_cast<const uint8_t*>(condition.data);
  const T *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  T* z = static_cast<T*>(dst);
  if (condition.stride == 0) {
    const Strided taken = *c != 0 ? a : b;
    const T* from = static_cast<const T*>(taken.data);
    for (int64_t i = 0; i < count; ++i) z[i] = from[i * taken.stride];
  } else if (condition.stride == 1) {
    TwoStrides(a.stride, b.stride, count, [c, x, y, z](int64_t i, int64_t j, int64_t k) {
      const T yes = x[j], no = y[k];
      z[i] = c[i] != 0 ? yes : no;
    });
  } else {
    for (int64_t i = 0; i < count; ++i) {
      z[i] = c[i * condition.stride] != 0 ? x[i * a.stride] : y[i * b.stride];
    }
  }
}

void SelectKernel(int64_t element_bytes, Strided condition, Strided a, Strided b, void* dst,
                  int64_t count) {
  if (element_bytes == 1) return SelectLoop<uint8_t>(condition, a, b, dst, count);
  if (element_bytes == 2) return SelectLoop<uint16_t>(condition, a, b, dst, count);
  if (element_bytes == 4) return SelectLoop<uint32_t>(condition, a, b, dst, count);
  if (element_bytes == 8) return SelectLoop<uint64_t>(condition, a, b, dst, count);
}

template <typename T>
void CopyLoop(Strided src, void* dst, int64_t count) {
  const T* from = static_cast<const T*>(src.data);
  T* to = static_cast<T*>(dst);
  if (src.stride == 1) {
    __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else if (src.stride == 0) {
    const T one = *from;
    for (int64_t i = 0; i < count; ++i) to[i] = one;
  } else if (src.stride == 2) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
  } else if (src.stride == -1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * src.stride];
  }
}

void CopyKernel(int64_t element_bytes, Strided src, void* dst, int64_t count) {
  if (element_bytes == 1) return CopyLoop<uint8_t>(src, dst, count);
  if (element_bytes == 2) return CopyLoop<uint16_t>(src, dst, count);
  if (element_bytes == 4) return CopyLoop<uint32_t>(src, dst, count);
  if (element_bytes == 8) return CopyLoop<uint64_t>(src, dst, count);
}

// A real number as the integer that it is cut to; the smallest one where there is none.
template <typename I, typename F>
MXPLAN_INLINE I Cut(F x) {
  constexpr F kEnd = static_cast<F>(uint64_t{1} << (8 * sizeof(I) - 1));
  const bool inside = x >= -kEnd && x < kEnd;
  return inside ? static_cast<I>(inside ? x : F(0)) : std::numeric_limits<I>::min();
}

template <typename To, typename From>
MXPLAN_INLINE To Cast(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) == 8) {
      return static_cast<To>(Cut<int64_t>(x));
    } else {
      return static_cast<To>(Cut<int32_t>(x));
    }
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void CastLoop(Strided src, void* dst, int64_t count) {
  const From* from = static_cast<const From*>(src.data);
  To* to = static_cast<To*>(dst);
  if (src.stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = Cast<To>(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = Cast<To>(from[i * src.stride]);
  }
}

template <typename From>
void TruthLoop(Strided src, void* dst, int64_t count) {
  const From* from = static_cast<const From*>(src.data);
  auto* to = static_cast<uint8_t*>(dst);
  if (src.stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] != 0 ? 1 : 0;
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * src.stride] != 0 ? 1 : 0;
  }
}

void CastKernel(Type from, Type to, Strided src, void* dst, int64_t count) {
  WithType(from, [&](auto source) {
    using From = decltype(source);
    if (to == Type::kBool) return TruthLoop<From>(src, dst, count);
    WithType(to, [&](auto target) { CastLoop<From, decltype(target)>(src, dst, count); });
  });
}

template <typename T>
void TakeLoop(const void* src, const int64_t* __restrict index, void* dst, int64_t count) {
  const T* from = static_cast<const T*>(src);
  T* __restrict to = static_cast<T*>(dst);
  for (int64_t i = 0; i < count; ++i) to[i] = from[index[i]];
}

void TakeKernel(int64_t element_bytes, const void* src, const int64_t* index, void* dst,
                int64_t count) {
  if (element_bytes == 1) return TakeLoop<uint8_t>(src, index, dst, count);
  if (element_bytes == 2) return TakeLoop<uint16_t>(src, index, dst, count);
  if (element_bytes == 4) return TakeLoop<uint32_t>(src, index, dst, count);
  if (element_bytes == 8) return TakeLoop<uint64_t>(src, index, dst, count);
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_MOVES_IMPL_H_
