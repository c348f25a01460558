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
template <Binary op, typename Vector>
MXPLAN_INLINE void CombineVectors(Vector* a, const void* from) {
  Vector b;
  __builtin_memcpy(&b, from, sizeof(b));
  if constexpr (op == Binary::kAdd) *a += b;
  if constexpr (op == Binary::kMul) *a *= b;
  if constexpr (op == Binary::kMin) *a = (*a < b) | (*a != *a) ? *a : b;
  if constexpr (op == Binary::kMax) *a = (*a > b) | (*a != *a) ? *a : b;
}

using Eight = float __attribute__((vector_size(32)));
using Four = float __attribute__((vector_size(16)));

// All numbers of a vector combined, half with half.  Without branches: a guess at which of two
// numbers is larger is wrong every other time, and nothing of the next row is read before that is
// known.
template <Binary op>
MXPLAN_INLINE float Across(const Four* of) {
  using Order = int32_t __attribute__((vector_size(16)));
  Four four = *of;
  Four turned = __builtin_shuffle(four, Order{2, 3, 0, 1});
  CombineVectors<op>(&four, &turned);
  turned = __builtin_shuffle(four, Order{1, 0, 3, 2});
  CombineVectors<op>(&four, &turned);
  return four[0];
}

template <Binary op>
MXPLAN_INLINE float Across(const Eight* of) {
  Four half;
  __builtin_memcpy(&half, of, sizeof(half));
  CombineVectors<op>(&half, reinterpret_cast<const char*>(of) + sizeof(half));
  return Across<op>(&half);
}

template <Binary op>
MXPLAN_INLINE float Across(const Lanes* of) {
  Eight half;
  __builtin_memcpy(&half, of, sizeof(half));
  CombineVectors<op>(&half, reinterpret_cast<const char*>(of) + sizeof(half));
  return Across<op>(&half);
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
      for (int k = 0; k < 4; ++k) CombineVectors<op>(&parts[k], src + i + k * kLanes);
    }
    CombineVectors<op>(&parts[0], &parts[1]);
    CombineVectors<op>(&parts[2], &parts[3]);
    CombineVectors<op>(&parts[0], &parts[2]);
    result = Across<op>(&parts[0]);
  } else {
    i = 1;
  }
  for (; i < count; ++i) result = Combine<op, float>(result, src[i]);
  return result;
}

// A register of the instruction set: the compiler takes choices between longer vectors apart.
using Register = float __attribute__((vector_size(4 * MXPLAN_LANES)));
using Words = int32_t __attribute__((vector_size(4 * MXPLAN_LANES)));
// Rows of fewer numbers take longer one by one than eight side by side.
constexpr int64_t kAlone = MXPLAN_LANES == 16 ? 32 : MXPLAN_LANES == 8 ? 24 : 4;
constexpr int32_t kInfinite = 0x7f800000;

// The smaller or larger of each two numbers, of which one that is none may get lost.
template <Binary op>
MXPLAN_INLINE void Choose(Register* a, const Register* b) {
  if constexpr (op == Binary::kMin) *a = *a < *b ? *a : *b;
  if constexpr (op == Binary::kMax) *a = *a > *b ? *a : *b;
}

// The same of numbers in memory; `far` keeps how far from zero any of them is: what is no number is
// farther than infinity.
template <Binary op>
MXPLAN_INLINE void Choose(Register* a, Words* far, const float* from) {
  Register b;
  Words bits;
  __builtin_memcpy(&b, from, sizeof(b));
  __builtin_memcpy(&bits, from, sizeof(bits));
  bits &= 0x7fffffff;
  *far = *far > bits ? *far : bits;
  Choose<op>(a, &b);
}

// The smallest or largest number of a row that fills a register; the last ones are read twice.
template <Binary op>
MXPLAN_INLINE float Outermost(const float* src, int64_t count) {
  Register parts[4];
  Words far[2] = {};
  __builtin_memcpy(&parts[0], src, sizeof(parts[0]));
  for (int k = 1; k < 4; ++k) parts[k] = parts[0];
  int64_t i = 0;
  for (; i + 4 * MXPLAN_LANES <= count; i += 4 * MXPLAN_LANES) {
    for (int k = 0; k < 4; ++k) Choose<op>(&parts[k], &far[k % 2], src + i + k * MXPLAN_LANES);
  }
  for (; i + MXPLAN_LANES <= count; i += MXPLAN_LANES) Choose<op>(&parts[0], &far[0], src + i);
  Choose<op>(&parts[1], &far[1], src + count - MXPLAN_LANES);
  for (int k = 1; k < 4; ++k) Choose<op>(&parts[0], &parts[k]);
  far[0] = far[0] > far[1] ? far[0] : far[1];
  const Register none = Register{} + __builtin_nanf("");
  parts[0] = far[0] > kInfinite ? none : parts[0];
  return Across<op>(&parts[0]);
}

// One element of each of eight rows.
constexpr int64_t kTogether = 8;

MXPLAN_INLINE void LoadEight(Eight* to, const float* from, int64_t row) {
  *to = Eight{from[0],       from[row],     from[2 * row], from[3 * row],
              from[4 * row], from[5 * row], from[6 * row], from[7 * row]};
}

template <Binary op>
MXPLAN_INLINE void CombineEight(Eight* a, const float* from, int64_t row) {
  Eight b;
  LoadEight(&b, from, row);
  CombineVectors<op>(a, &b);
}

// Short rows side by side: in one of them, each element waits for the one before it.
template <Binary op>
void ReduceRows(const float* src, int64_t row, float* dst, int64_t stride, const Extent& extent) {
  int64_t r = 0;
  if constexpr (op == Binary::kMin || op == Binary::kMax) {
    for (; extent.count >= kAlone && r < extent.rows; ++r) {
      dst[r * stride] = Outermost<op>(src + r * row, extent.count);
    }
  }
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
