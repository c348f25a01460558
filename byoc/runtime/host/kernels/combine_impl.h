// Arithmetic of two numbers, for loops of any instruction set; everything is in an unnamed
// namespace.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_COMBINE_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_COMBINE_IMPL_H_

#include <type_traits>

#include "host/kernels/kernels.h"

namespace mxplan::host {
namespace {

// Integers wrap around, as in two's complement.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::common_type<T>>::type;

// The quotient rounded down, of integers; 0 by 0, and the least number by -1 is itself.
template <typename T>
inline __attribute__((always_inline)) T FloorDivide(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return static_cast<T>(0 - static_cast<Wrapping<T>>(x));
  }
  const T quotient = static_cast<T>(x / y), rest = static_cast<T>(x % y);
  return static_cast<T>(quotient - (rest != 0 && (rest < 0) != (y < 0) ? 1 : 0));
}

template <Binary op, typename T>
inline __attribute__((always_inline)) T Combine(T x, T y) {
  using W = Wrapping<T>;
  if constexpr (op == Binary::kAdd) return static_cast<T>(static_cast<W>(x) + static_cast<W>(y));
  if constexpr (op == Binary::kSub) return static_cast<T>(static_cast<W>(x) - static_cast<W>(y));
  if constexpr (op == Binary::kMul) return static_cast<T>(static_cast<W>(x) * static_cast<W>(y));
  if constexpr (op == Binary::kDiv && std::is_floating_point_v<T>) return x / y;
  if constexpr (op == Binary::kDiv && std::is_integral_v<T>) return FloorDivide(x, y);
  // One that is no number makes the result none.
  if constexpr (op == Binary::kMin) return x < y || x != x ? x : y;
  if constexpr (op == Binary::kMax) return x > y || x != x ? x : y;
  return x;
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_COMBINE_IMPL_H_
