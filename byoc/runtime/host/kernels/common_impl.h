// Parts that the loops share.  The compiler makes vectors of them, which is why every choice stands
// outside of a loop.  Included by kernels_impl.h's parts alone.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_COMMON_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_COMMON_IMPL_H_

#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno", "fp-contract=fast")

namespace mxplan::host {
namespace {

#define MXPLAN_INLINE inline __attribute__((always_inline))

template <typename To, typename From>
MXPLAN_INLINE To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

using Zero = std::integral_constant<int64_t, 0>;
using One = std::integral_constant<int64_t, 1>;

// Calls `of(a, b)` with two strides; the usual ones are constants, which loops are compiled for.
template <typename Of>
MXPLAN_INLINE void WithStrides(int64_t a, int64_t b, const Of& of) {
  if (a == 1 && b == 1) return of(One(), One());
  if (a == 1 && b == 0) return of(One(), Zero());
  if (a == 0 && b == 1) return of(Zero(), One());
  of(a, b);
}

// The elements of a row of an operand.  One that is taken for all is read once: what the loop
// writes does not change it.
template <typename T, typename Stride>
struct RowOf {
  const T* data;
  Stride stride;
  MXPLAN_INLINE T operator[](int64_t i) const { return data[i * stride]; }
};

template <typename T>
struct RowOf<T, Zero> {
  T value;
  MXPLAN_INLINE T operator[](int64_t) const { return value; }
};

template <typename T, typename Stride>
MXPLAN_INLINE RowOf<T, Stride> Row(const Strided& operand, int64_t row, Stride stride) {
  const T* data = static_cast<const T*>(operand.data) + row * operand.row;
  if constexpr (std::is_same_v<Stride, Zero>) {
    return {*data};
  } else {
    return {data, stride};
  }
}

template <typename T>
MXPLAN_INLINE T* Row(const Written& dst, int64_t row) {
  return static_cast<T*>(dst.data) + row * dst.row;
}

// Each element is written where it is read, or where nothing is read any more.  The count is read
// before the loop: a loop that writes bytes or int64 might change it, as far as the compiler knows.
#define MXPLAN_FOR_EACH(i, count) \
  _Pragma("GCC ivdep") for (int64_t i = 0, i##_end = (count); i < i##_end; ++i)

// A register of elements, and one of places in two of them.
template <typename T>
struct Picked {
  using Place = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  static constexpr int64_t kCount = 4 * MXPLAN_LANES / static_cast<int64_t>(sizeof(T));
  typedef T Register __attribute__((vector_size(4 * MXPLAN_LANES)));    // NOLINT: a dependent type
  typedef Place Places __attribute__((vector_size(4 * MXPLAN_LANES)));  // NOLINT: a dependent type
};

// Whether elements of a short row are picked out of registers; SSE has no instruction for that.
template <typename T>
constexpr bool kPicks = MXPLAN_LANES >= 8 && sizeof(T) >= 4;

// *to = the elements of two registers, which stand one behind the other, at places[...].
template <typename T>
MXPLAN_INLINE void Pick(const typename Picked<T>::Register* two,
                        const typename Picked<T>::Place* places, typename Picked<T>::Register* to) {
  typename Picked<T>::Places at;
  __builtin_memcpy(&at, places, sizeof(at));
  *to = __builtin_shuffle(two[0], two[1], at);
}

// Calls `of(T())` for the C++ type of `type`.
template <typename Of>
MXPLAN_INLINE void WithType(Type type, const Of& of) {
  switch (type) {
    case Type::kF32:
      return of(float());
    case Type::kF64:
      return of(double());
    case Type::kI8:
      return of(int8_t());
    case Type::kU8:
    case Type::kBool:
      return of(uint8_t());
    case Type::kI32:
      return of(int32_t());
    case Type::kI64:
      return of(int64_t());
  }
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_COMMON_IMPL_H_
