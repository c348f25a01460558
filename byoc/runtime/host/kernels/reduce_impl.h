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

// One element of each of eight rows.
using Eight = float __attribute__((vector_size(32)));
constexpr int64_t kTogether = 8;

MXPLAN_INLINE void LoadEight(Eight* to, const float* from, int64_t row) {
  *to = Eight{from[0],       from[row],     from[2 * row], from[3 * row],
              from[4 * row], from[5 * row], from[6 * row], from[7 * row]};
}

template <Binary op>
MXPLAN_INLINE void CombineEight(Eight* a, const float* from, int64_t row) {
  Eight b;
  LoadEight(&b, from, row);
  if constexpr (op == Binary::kAdd) *a += b;
  if constexpr (op == Binary::kMul) *a *= b;
  if constexpr (op == Binary::kMin) *a = (*a < b) | (*a != *a) ? *a : b;
  if constexpr (op == Binary::kMax) *a = (*a > b) | (*a != *a) ? *a : b;
}

// Short rows side by side: in one of them, each element waits for the one before it.
template <Binary op>
void ReduceRows(const float* src, int64_t row, float* dst, int64_t stride, const Extent& extent) {
  int64_t r = 0;
  for (; extent.count < 4 * kLanes && r + kTogether <= extent.rows; r += kTogether) {
    const float* from = src + r * row;
    Eight parts;
    LoadEight(&parts, from, row);
    for (int64_t i = 1; i < extent.count; ++i) CombineEight<op>(&parts, from + i, row);
    for (int64_t k = 0; k < kTogether; ++k) dst[(r + k) * stride] = parts[k];
  }
  for (; r < extent.rows; ++r) dst[r * stride] = ReduceRow<op>(src + r * row, extent.count);
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

void ReduceRowsKernel(Binary op, const float* src, int64_t row, float* dst, int64_t stride,
                      Extent extent) {
  if (op == Binary::kMul) return ReduceRows<Binary::kMul>(src, row, dst, stride, extent);
  if (op == Binary::kMin) return ReduceRows<Binary::kMin>(src, row, dst, stride, extent);
  if (op == Binary::kMax) return ReduceRows<Binary::kMax>(src, row, dst, stride, extent);
  return ReduceRows<Binary::kAdd>(src, row, dst, stride, extent);
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
