// Selection, copies, casts, and elements by their indices.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_MOVES_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_MOVES_IMPL_H_

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

template <typename T, typename A, typename B>
MXPLAN_INLINE void SelectRow(const uint8_t* __restrict c, const A& x, const B& y, T* z,
                             int64_t count) {
  MXPLAN_FOR_EACH(i, count) {
    const T yes = x[i], no = y[i];
    z[i] = c[i] != 0 ? yes : no;
  }
}

template <typename T>
void SelectLoop(const Strided& condition, const Strided& a, const Strided& b, const Written& dst,
                const Extent& extent) {
  const auto* c = static_cast<const uint8_t*>(condition.data);
  if (condition.stride == 1) {
    WithStrides(a.stride, b.stride, [&](auto along_a, auto along_b) {
      for (int64_t row = 0; row < extent.rows; ++row) {
        SelectRow(c + row * condition.row, Row<T>(a, row, along_a), Row<T>(b, row, along_b),
                  Row<T>(dst, row), extent.count);
      }
    });
    return;
  }
  for (int64_t row = 0; row < extent.rows; ++row) {
    const uint8_t* given = c + row * condition.row;
    T* z = Row<T>(dst, row);
    if (condition.stride == 0) {
      const Strided& taken = *given != 0 ? a : b;
      const auto x = Row<T>(taken, row, taken.stride);
      MXPLAN_FOR_EACH(i, extent.count) z[i] = x[i];
    } else {
      const auto x = Row<T>(a, row, a.stride), y = Row<T>(b, row, b.stride);
      MXPLAN_FOR_EACH(i, extent.count) z[i] = given[i * condition.stride] != 0 ? x[i] : y[i];
    }
  }
}

void SelectKernel(int64_t element_bytes, Strided condition, Strided a, Strided b, Written dst,
                  Extent extent) {
  if (element_bytes == 1) return SelectLoop<uint8_t>(condition, a, b, dst, extent);
  if (element_bytes == 2) return SelectLoop<uint16_t>(condition, a, b, dst, extent);
  if (element_bytes == 4) return SelectLoop<uint32_t>(condition, a, b, dst, extent);
  if (element_bytes == 8) return SelectLoop<uint64_t>(condition, a, b, dst, extent);
}

template <int64_t kBytes>
MXPLAN_INLINE void CopyEnds(char* dst, const char* src, int64_t bytes) {
  __builtin_memcpy(dst, src, kBytes);
  __builtin_memcpy(dst + bytes - kBytes, src + bytes - kBytes, kBytes);
}

// A few bytes, where calling memcpy takes as long as copying them: whole vectors, of which the last
// one may write again what the one before it has written.
MXPLAN_INLINE void CopyFew(char* __restrict dst, const char* __restrict src, int64_t bytes) {
  if (bytes >= 32) {  // wider vectors would cross more lines of the cache
    for (int64_t at = 0; at + 32 < bytes; at += 32) __builtin_memcpy(dst + at, src + at, 32);
    __builtin_memcpy(dst + bytes - 32, src + bytes - 32, 32);
  } else if (bytes >= 16) {
    CopyEnds<16>(dst, src, bytes);
  } else if (bytes >= 8) {
    CopyEnds<8>(dst, src, bytes);
  } else if (bytes >= 4) {
    CopyEnds<4>(dst, src, bytes);
  } else {
    for (int64_t at = 0; at < bytes; ++at) dst[at] = src[at];
  }
}

constexpr int64_t kFewBytes = 1024;

void CopyRows(int64_t bytes, const char* src, int64_t src_row, char* dst, int64_t dst_row,
              int64_t rows) {
  if (bytes > kFewBytes) {
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(dst + row * dst_row, src + row * src_row, static_cast<size_t>(bytes));
    }
    return;
  }
  for (int64_t row = 0; row < rows; ++row) CopyFew(dst + row * dst_row, src + row * src_row, bytes);
}

template <typename T, typename Stride>
MXPLAN_INLINE void CopyStrided(const Strided& src, const Written& dst, const Extent& extent,
                               Stride stride) {
  for (int64_t row = 0; row < extent.rows; ++row) {
    const auto from = Row<T>(src, row, stride);
    T* to = Row<T>(dst, row);
    MXPLAN_FOR_EACH(i, extent.count) to[i] = from[i];
  }
}

template <typename T>
void CopyLoop(const Strided& src, const Written& dst, const Extent& extent) {
  constexpr int64_t kBytes = sizeof(T);
  if (src.stride == 1) {
    CopyRows(extent.count * kBytes, static_cast<const char*>(src.data), src.row * kBytes,
             static_cast<char*>(dst.data), dst.row * kBytes, extent.rows);
  } else if (src.stride == 0) {
    CopyStrided<T>(src, dst, extent, Zero());
  } else if (src.stride == 2) {
    CopyStrided<T>(src, dst, extent, std::integral_constant<int64_t, 2>());
  } else if (src.stride == -1) {
    CopyStrided<T>(src, dst, extent, std::integral_constant<int64_t, -1>());
  } else {
    CopyStrided<T>(src, dst, extent, src.stride);
  }
}

void CopyKernel(int64_t element_bytes, Strided src, Written dst, Extent extent) {
  if (element_bytes == 1) return CopyLoop<uint8_t>(src, dst, extent);
  if (element_bytes == 2) return CopyLoop<uint16_t>(src, dst, extent);
  if (element_bytes == 4) return CopyLoop<uint32_t>(src, dst, extent);
  if (element_bytes == 8) return CopyLoop<uint64_t>(src, dst, extent);
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

// Calls `rows(stride)` with the stride of an operand, a constant where it is 1.
template <typename Rows>
MXPLAN_INLINE void WithStride(int64_t stride, const Rows& rows) {
  if (stride == 1) return rows(One());
  rows(stride);
}

template <typename From, typename To>
void CastLoop(const Strided& src, const Written& dst, const Extent& extent) {
  WithStride(src.stride, [&](auto stride) {
    for (int64_t row = 0; row < extent.rows; ++row) {
      const auto from = Row<From>(src, row, stride);
      To* to = Row<To>(dst, row);
      MXPLAN_FOR_EACH(i, extent.count) to[i] = Cast<To>(from[i]);
    }
  });
}

template <typename From>
void TruthLoop(const Strided& src, const Written& dst, const Extent& extent) {
  WithStride(src.stride, [&](auto stride) {
    for (int64_t row = 0; row < extent.rows; ++row) {
      const auto from = Row<From>(src, row, stride);
      auto* to = Row<uint8_t>(dst, row);
      MXPLAN_FOR_EACH(i, extent.count) to[i] = from[i] != 0 ? 1 : 0;
    }
  });
}

void CastKernel(Type from, Type to, Strided src, Written dst, Extent extent) {
  WithType(from, [&](auto source) {
    using From = decltype(source);
    if (to == Type::kBool) return TruthLoop<From>(src, dst, extent);
    WithType(to, [&](auto target) { CastLoop<From, decltype(target)>(src, dst, extent); });
  });
}

// Several rows at once: their indices are read once.
template <int kRows, typename T>
MXPLAN_INLINE void TakeRows(const T* src, int64_t src_row, const int64_t* __restrict index,
                            T* __restrict dst, int64_t dst_row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = index[i];
    asm("" : "+r"(at));  // gathering instructions take longer than loads, one by one
    for (int row = 0; row < kRows; ++row) dst[row * dst_row + i] = src[row * src_row + at];
  }
}

// Rows of which two registers hold all that is asked for: elements are picked out of these.  What
// is read behind a row belongs to the next one, and what is written behind one is written again
// with it, so the last rows are left to others; returns how many were done.
template <typename T>
MXPLAN_INLINE int64_t PickRows(const Strided& src, const int64_t* index, const Written& dst,
                               const Extent& extent) {
  using Register = typename Picked<T>::Register;
  using Place = typename Picked<T>::Place;
  constexpr int64_t kStep = Picked<T>::kCount, kMost = 16 * kStep;
  if (extent.count > kMost || extent.count == 0) return 0;
  int64_t first = index[0], last = index[0];
  for (int64_t i = 1; i < extent.count; ++i) {
    first = std::min(first, index[i]);
    last = std::max(last, index[i]);
  }
  if (last - first >= 2 * kStep) return 0;
  Place places[kMost];
  for (int64_t i = 0; i < extent.count; ++i) places[i] = static_cast<Place>(index[i] - first);
  for (int64_t i = extent.count; i < kStep; ++i) places[i] = 0;
  int64_t row = 0;
  for (; row < extent.rows && (extent.rows - row) * src.row >= first + 2 * kStep &&
         (extent.rows - row) * dst.row >= extent.count + kStep;
       ++row) {
    Register two[2], x;
    __builtin_memcpy(two, static_cast<const T*>(src.data) + row * src.row + first, sizeof(two));
    T* to = Row<T>(dst, row);
    if (extent.count < kStep) {
      Pick<T>(two, places, &x);
      __builtin_memcpy(to, &x, sizeof(x));
      continue;
    }
    int64_t at = 0;
    for (; at + kStep <= extent.count; at += kStep) {
      Pick<T>(two, places + at, &x);
      __builtin_memcpy(to + at, &x, sizeof(x));
    }
    if (at < extent.count) {
      Pick<T>(two, places + extent.count - kStep, &x);
      __builtin_memcpy(to + extent.count - kStep, &x, sizeof(x));
    }
  }
  return row;
}

template <typename T>
void TakeLoop(const Strided& src, const int64_t* index, const Written& dst, const Extent& extent) {
  constexpr int kRows = 4;
  int64_t row = 0;
  // Rows of dst that are pieces of longer ones have neighbours behind them.
  if constexpr (kPicks<T>) {
    if (dst.row == extent.count) row = PickRows<T>(src, index, dst, extent);
  }
  for (; row + kRows <= extent.rows; row += kRows) {
    TakeRows<kRows>(Row<T>(src, row, One()).data, src.row, index, Row<T>(dst, row), dst.row,
                    extent.count);
  }
  for (; row < extent.rows; ++row) {
    TakeRows<1>(Row<T>(src, row, One()).data, src.row, index, Row<T>(dst, row), dst.row,
                extent.count);
  }
}

void TakeKernel(int64_t element_bytes, Strided src, const int64_t* index, Written dst,
                Extent extent) {
  if (element_bytes == 1) return TakeLoop<uint8_t>(src, index, dst, extent);
  if (element_bytes == 2) return TakeLoop<uint16_t>(src, index, dst, extent);
  if (element_bytes == 4) return TakeLoop<uint32_t>(src, index, dst, extent);
  if (element_bytes == 8) return TakeLoop<uint64_t>(src, index, dst, extent);
}

MXPLAN_INLINE void TakeEntries(int64_t bytes, const char* src, int64_t src_row,
                               const int64_t* index, char* dst, const Extent& extent) {
  for (int64_t row = 0; row < extent.rows; ++row) {
    const char* from = src + row * src_row;
    for (int64_t i = 0; i < extent.count; ++i, dst += bytes) {
      CopyFew(dst, from + index[i] * bytes, bytes);
    }
  }
}

void TakeEntriesKernel(int64_t bytes, const char* src, int64_t src_row, const int64_t* index,
                       char* dst, Extent extent) {
  if (bytes <= kFewBytes) return TakeEntries(bytes, src, src_row, index, dst, extent);
  for (int64_t row = 0; row < extent.rows; ++row) {
    for (int64_t i = 0; i < extent.count; ++i, dst += bytes) {
      std::memcpy(dst, src + row * src_row + index[i] * bytes, static_cast<size_t>(bytes));
    }
  }
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_MOVES_IMPL_H_
