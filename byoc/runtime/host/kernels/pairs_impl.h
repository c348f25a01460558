// Arithmetic and comparisons of two operands.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_PAIRS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_PAIRS_IMPL_H_

#include "host/kernels/combine_impl.h"
#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

template <Binary op, typename T>
void BinaryLoop(const Strided& a, const Strided& b, const Written& dst, const Extent& extent) {
  WithStrides(a.stride, b.stride, [&](auto along_a, auto along_b) {
    for (int64_t row = 0; row < extent.rows; ++row) {
      const auto x = Row<T>(a, row, along_a);
      const auto y = Row<T>(b, row, along_b);
      T* z = Row<T>(dst, row);
      MXPLAN_FOR_EACH(i, extent.count) z[i] = Combine<op, T>(x[i], y[i]);
    }
  });
}

template <typename T>
void BinaryOf(Binary op, const Strided& a, const Strided& b, const Written& dst,
              const Extent& extent) {
  switch (op) {
    case Binary::kAdd:
      return BinaryLoop<Binary::kAdd, T>(a, b, dst, extent);
    case Binary::kSub:
      return BinaryLoop<Binary::kSub, T>(a, b, dst, extent);
    case Binary::kMul:
      return BinaryLoop<Binary::kMul, T>(a, b, dst, extent);
    case Binary::kDiv:
      return BinaryLoop<Binary::kDiv, T>(a, b, dst, extent);
    case Binary::kMin:
      return BinaryLoop<Binary::kMin, T>(a, b, dst, extent);
    case Binary::kMax:
      return BinaryLoop<Binary::kMax, T>(a, b, dst, extent);
  }
}

void BinaryKernel(Binary op, Type type, Strided a, Strided b, Written dst, Extent extent) {
  if (type == Type::kF32) return BinaryOf<float>(op, a, b, dst, extent);
  if (type == Type::kI32) return BinaryOf<int32_t>(op, a, b, dst, extent);
  if (type == Type::kI64) return BinaryOf<int64_t>(op, a, b, dst, extent);
  if (type == Type::kBool) return BinaryOf<uint8_t>(op, a, b, dst, extent);
}

template <Comparison op, typename T>
MXPLAN_INLINE bool Holds(T x, T y) {
  if constexpr (op == Comparison::kEqual) return x == y;
  if constexpr (op == Comparison::kNotEqual) return x != y;
  if constexpr (op == Comparison::kLess) return x < y;
  if constexpr (op == Comparison::kLessEqual) return x <= y;
  if constexpr (op == Comparison::kGreater) return x > y;
  return x >= y;
}

template <Comparison op, typename T>
void CompareLoop(const Strided& a, const Strided& b, const Written& dst, const Extent& extent) {
  WithStrides(a.stride, b.stride, [&](auto along_a, auto along_b) {
    for (int64_t row = 0; row < extent.rows; ++row) {
      const auto x = Row<T>(a, row, along_a);
      const auto y = Row<T>(b, row, along_b);
      auto* z = Row<uint8_t>(dst, row);
      MXPLAN_FOR_EACH(i, extent.count) z[i] = Holds<op, T>(x[i], y[i]) ? 1 : 0;
    }
  });
}

template <typename T>
void CompareOf(Comparison op, const Strided& a, const Strided& b, const Written& dst,
               const Extent& extent) {
  switch (op) {
    case Comparison::kEqual:
      return CompareLoop<Comparison::kEqual, T>(a, b, dst, extent);
    case Comparison::kNotEqual:
      return CompareLoop<Comparison::kNotEqual, T>(a, b, dst, extent);
    case Comparison::kLess:
      return CompareLoop<Comparison::kLess, T>(a, b, dst, extent);
    case Comparison::kLessEqual:
      return CompareLoop<Comparison::kLessEqual, T>(a, b, dst, extent);
    case Comparison::kGreater:
      return CompareLoop<Comparison::kGreater, T>(a, b, dst, extent);
    case Comparison::kGreaterEqual:
      return CompareLoop<Comparison::kGreaterEqual, T>(a, b, dst, extent);
  }
}

void CompareKernel(Comparison op, Type type, Strided a, Strided b, Written dst, Extent extent) {
  WithType(type, [&](auto zero) { CompareOf<decltype(zero)>(op, a, b, dst, extent); });
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_PAIRS_IMPL_H_
