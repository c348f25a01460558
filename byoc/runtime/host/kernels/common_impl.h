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

// `at(i, j)` for i of the first operand and j of the second.  The usual strides have loops of their
// own, which the compiler makes vectors of.
template <typename At>
MXPLAN_INLINE void TwoStrides(int64_t a, int64_t b, int64_t count, const At& at) {
  if (a == 1 && b == 1) {
    for (int64_t i = 0; i < count; ++i) at(i, i, i);
  } else if (a == 1 && b == 0) {
    for (int64_t i = 0; i < count; ++i) at(i, i, 0);
  } else if (a == 0 && b == 1) {
    for (int64_t i = 0; i < count; ++i) at(i, 0, i);
  } else {
    for (int64_t i = 0; i < count; ++i) at(i, i * a, i * b);
  }
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
