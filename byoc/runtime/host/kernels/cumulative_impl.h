// Sums along rows and columns up to each place.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_CUMULATIVE_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_CUMULATIVE_IMPL_H_

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

// *x with each element `by` places further on, behind zeros, or with `reverse` further back.
template <bool reverse, typename T, int64_t by>
MXPLAN_INLINE void Shift(const typename Picked<T>::Register* x, typename Picked<T>::Register* to) {
  using Lanes = Picked<T>;
  typename Lanes::Places places;
  for (int64_t i = 0; i < Lanes::kCount; ++i) {
    const int64_t from = reverse ? i + by : i - by;
    const bool inside = from >= 0 && from < Lanes::kCount;
    places[i] = static_cast<typename Lanes::Place>(inside ? Lanes::kCount + from : 0);
  }
  *to = __builtin_shuffle(typename Lanes::Register{}, *x, places);
}

// The sums of *x up to each place.
template <bool reverse, typename T, int64_t by = 1>
MXPLAN_INLINE void SumUp(typename Picked<T>::Register* x) {
  if constexpr (by < Picked<T>::kCount) {
    typename Picked<T>::Register moved;
    Shift<reverse, T, by>(x, &moved);
    *x += moved;
    SumUp<reverse, T, 2 * by>(x);
  }
}

// The last of *x in the order of the sums, everywhere.
template <bool reverse, typename T>
MXPLAN_INLINE void Spread(typename Picked<T>::Register* x) {
  using Lanes = Picked<T>;
  typename Lanes::Places places;
  for (int64_t i = 0; i < Lanes::kCount; ++i) {
    places[i] = static_cast<typename Lanes::Place>(reverse ? 0 : Lanes::kCount - 1);
  }
  *x = __builtin_shuffle(*x, places);
}

// One row: whole registers, between which only the sum so far is handed on, then the elements that
// are left.
template <bool exclusive, bool reverse, typename T>
MXPLAN_INLINE void SumRow(const T* __restrict src, T* __restrict dst, int64_t count) {
  using Lanes = Picked<T>;
  using Register = typename Lanes::Register;
  const int64_t whole = count - count % Lanes::kCount;
  Register sum = {};
  for (int64_t i = 0; i < whole; i += Lanes::kCount) {
    const int64_t at = reverse ? count - i - Lanes::kCount : i;
    Register x, result;
    __builtin_memcpy(&x, src + at, sizeof(x));
    SumUp<reverse, T>(&x);
    if constexpr (exclusive) {
      Shift<reverse, T, 1>(&x, &result);
      result += sum;
    } else {
      result = x + sum;
    }
    Spread<reverse, T>(&x);
    sum += x;
    __builtin_memcpy(dst + at, &result, sizeof(result));
  }
  T so_far = sum[0];
  for (int64_t i = whole; i < count; ++i) {
    const int64_t at = reverse ? count - i - 1 : i;
    const T next = so_far + src[at];
    dst[at] = exclusive ? so_far : next;
    so_far = next;
  }
}

template <bool exclusive, bool reverse, typename T>
void SumRows(const T* src, T* dst, const Extent& extent) {
  for (int64_t row = 0; row < extent.rows; ++row) {
    SumRow<exclusive, reverse>(src + row * extent.count, dst + row * extent.count, extent.count);
  }
}

template <bool exclusive, bool reverse, typename T>
void SumColumns(const T* src, T* dst, int64_t row, const Extent& extent) {
  T sums[kMostColumns] = {};
  for (int64_t k = 0; k < extent.rows; ++k) {
    const int64_t at = (reverse ? extent.rows - 1 - k : k) * row;
    const T* __restrict from = src + at;
    T* __restrict to = dst + at;
    MXPLAN_FOR_EACH(i, extent.count) {
      const T next = sums[i] + from[i];
      to[i] = exclusive ? sums[i] : next;
      sums[i] = next;
    }
  }
}

// Calls `of(exclusive, reverse)` with constants.
template <typename Of>
MXPLAN_INLINE void WithWay(Cumulation way, const Of& of) {
  using Yes = std::true_type;
  using No = std::false_type;
  if (way.exclusive) return way.reverse ? of(Yes(), Yes()) : of(Yes(), No());
  way.reverse ? of(No(), Yes()) : of(No(), No());
}

// Calls `of(T())` for a type that sums are made in; integers, which wrap around, as unsigned ones.
template <typename Of>
MXPLAN_INLINE void WithSummed(Type type, const Of& of) {
  if (type == Type::kF32) return of(float());
  if (type == Type::kF64) return of(double());
  if (type == Type::kI32) return of(uint32_t());
  if (type == Type::kI64) return of(uint64_t());
}

void CumulativeRowsKernel(Type type, Cumulation way, const void* src, void* dst, Extent extent) {
  WithSummed(type, [&](auto zero) {
    using T = decltype(zero);
    WithWay(way, [&](auto exclusive, auto reverse) {
      SumRows<exclusive, reverse>(static_cast<const T*>(src), static_cast<T*>(dst), extent);
    });
  });
}

void CumulativeColumnsKernel(Type type, Cumulation way, const void* src, void* dst, int64_t row,
                             Extent extent) {
  WithSummed(type, [&](auto zero) {
    using T = decltype(zero);
    WithWay(way, [&](auto exclusive, auto reverse) {
      SumColumns<exclusive, reverse>(static_cast<const T*>(src), static_cast<T*>(dst), row, extent);
    });
  });
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_CUMULATIVE_IMPL_H_
