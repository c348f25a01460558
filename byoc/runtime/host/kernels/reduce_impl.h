// Sums, products, largest and smallest elements of rows and of columns.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_REDUCE_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_REDUCE_IMPL_H_

#include "host/kernels/common_impl.h"
#include "host/kernels/pairs_impl.h"

namespace mxplan::host {
namespace {

// Sixteen numbers, in as many registers as the instruction set needs for them.
using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16;

// Vectors travel by address: by value they would depend on the instruction set.
template <Binary op>
MXPLAN_INLINE void CombineLanes(Lanes* a, const void* from) {
  Lanes b;
  __builtin_memcpy(&b, from, sizeof(b));
  if constexpr (op == Binary::kAdd) *a += b;
  if constexpr (op == Binary::kMul) *a *= b;
  if constexpr (op == Binary::kMin) *a = (*a < b) | (*a != *a) ? *a : b;
  if constexpr (op == Binary::kMax) *a = (*a > b) | (*a != *a) ? *a : b;
}

// Of one row, which is not empty.  Sums have sixty-four parts, so a rounding error is one of a
// sixty-fourth of the terms.
template <Binary op>
float ReduceRow(const float* src, int64_t count) {
  int64_t i = 0;
  float result = src[0];
  if (count >= 4 * kLanes) {
    Lanes parts[4];
    __builtin_memcpy(parts, src, sizeof(parts));
    for (i = 4 * kLanes; i + 4 * kLanes <= count; i += 4 * kLanes) {
      for (int k = 0; k < 4; ++k) CombineLanes<op>(&parts[k], src + i + k * kLanes);
    }
    CombineLanes<op>(&parts[0], &parts[1]);
    CombineLanes<op>(&parts[2], &parts[3]);
    CombineLanes<op>(&parts[0], &parts[2]);
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) {
        parts[0][k] = Combine<op, float>(parts[0][k], parts[0][k + half]);
      }
    }
    result = parts[0][0];
  } else {
    i = 1;
  }
  for (; i < count; ++i) result = Combine<op, float>(result, src[i]);
  return result;
}

// Of columns, into what is there.
template <Binary op>
void ReduceColumns(const float* src, int64_t row, int64_t rows, float* __restrict dst,
                   int64_t count) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float *a = src + r * row, *b = a + row, *c = b + row, *d = c + row;
    MXPLAN_FOR_EACH(i, count) {
      const float both = Combine<op, float>(a[i], b[i]), others = Combine<op, float>(c[i], d[i]);
      dst[i] = Combine<op, float>(dst[i], Combine<op, float>(both, others));
    }
  }
  for (; r < rows; ++r) {
    const float* a = src + r * row;
    MXPLAN_FOR_EACH(i, count) dst[i] = Combine<op, float>(dst[i], a[i]);
  }
}

float ReduceRowKernel(Binary op, const float* src, int64_t count) {
  if (op == Binary::kMul) return ReduceRow<Binary::kMul>(src, count);
  if (op == Binary::kMin) return ReduceRow<Binary::kMin>(src, count);
  if (op == Binary::kMax) return ReduceRow<Binary::kMax>(src, count);
  return ReduceRow<Binary::kAdd>(src, count);
}

void ReduceColumnsKernel(Binary op, const float* src, int64_t row, int64_t rows, float* dst,
                         int64_t count) {
  if (op == Binary::kMul) return ReduceColumns<Binary::kMul>(src, row, rows, dst, count);
  if (op == Binary::kMin) return ReduceColumns<Binary::kMin>(src, row, rows, dst, count);
  if (op == Binary::kMax) return ReduceColumns<Binary::kMax>(src, row, rows, dst, count);
  return ReduceColumns<Binary::kAdd>(src, row, rows, dst, count);
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_REDUCE_IMPL_H_
