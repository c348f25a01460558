// The two products of attention, of tiles that stay in registers: scores from queries and keys,
// results from probabilities and values.  A part of kernels_impl.h, which is included once for each
// instruction set.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_PRODUCTS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_PRODUCTS_IMPL_H_

#include <algorithm>
#include <cstring>

#include "onednn/attention/kernels.h"
#include "onednn/attention/vectors.h"

namespace mxplan::attention {
namespace {

// scores[i][rows] of kK keys.
template <int64_t kQ, int64_t kK>
MXPLAN_INLINE void ScoresOf(const float* queries, const float* key, int64_t stride, int64_t depth,
                            float* scores) {
  constexpr int64_t kRows = kQ * kLanes;
  Vec sums[kK][kQ] = {};
  for (int64_t d = 0; d < depth; ++d) {
    Vec q[kQ];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kQ; ++j) q[j] = Load(queries + d * kRows + j * kLanes);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kK; ++i) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < kQ; ++j) sums[i][j] += q[j] * key[i * stride + d];
    }
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kK; ++i) {
#pragma GCC unroll 4
    for (int64_t j = 0; j < kQ; ++j) Store(scores + i * kRows + j * kLanes, sums[i][j]);
  }
}

template <int64_t kQ>
void Scores(const float* queries, const float* key, int64_t stride, int64_t depth, int64_t keys,
            float* scores) {
  constexpr int64_t kRows = kQ * kLanes, kK = MXPLAN_KEYS / kQ, kHalf = kK > 4 ? 4 : 2;
  int64_t k = 0;
  for (; k + kK <= keys; k += kK) {
    ScoresOf<kQ, kK>(queries, key + k * stride, stride, depth, scores + k * kRows);
  }
  for (; k + kHalf <= keys; k += kHalf) {
    ScoresOf<kQ, kHalf>(queries, key + k * stride, stride, depth, scores + k * kRows);
  }
  for (; k < keys; ++k) {
    ScoresOf<kQ, 1>(queries, key + k * stride, stride, depth, scores + k * kRows);
  }
}

// The place of results, and the use of those before.
struct Results {
  const Query* queries;
  const float* factors;  // of what stands there, by rows; null where nothing does
  const float* inverse;  // factors of the whole, by rows; null before the last block of keys
};

// A row's sum of values, one vector of it.
MXPLAN_INLINE void KeepSum(const Results& results, int64_t row, int64_t column, int64_t columns,
                           Vec sum) {
  float* dst = results.queries[row].dst + column;
  const int64_t valid = std::min(kLanes, columns - column);
  if (results.factors) {
    Vec before{};
    if (valid == kLanes) {
      before = Load(dst);
    } else {
      std::memcpy(&before, dst, static_cast<size_t>(valid) * sizeof(float));
    }
    sum += before * results.factors[row];
  }
  if (results.inverse) {
    float inverse = results.inverse[row];
    sum = inverse == 0 ? Vec{} : sum * inverse;
  }
  if (valid == kLanes) {
    Store(dst, sum);
  } else {
    std::memcpy(dst, &sum, static_cast<size_t>(valid) * sizeof(float));
  }
}

// kR rows from `row` on, kV vectors from `column` on.  Probabilities are `along` apart from key to
// key, and `across` from row to row.
template <int64_t kR, int64_t kV>
MXPLAN_INLINE void ValuesOf(const float* p, int64_t along, int64_t across, Rows value, int64_t keys,
                            int64_t row, int64_t rows, int64_t column, int64_t columns,
                            const Results& results) {
  Vec sums[kR][kV] = {};
  for (int64_t k = 0; k < keys; ++k) {
    Vec v[kV];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kV; ++j)
      v[j] = Load(value.data + k * value.stride + column + j * kLanes);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kR; ++i) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < kV; ++j) sums[i][j] += v[j] * p[k * along + i * across];
    }
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kR; ++i) {
    if (row + i >= rows) break;
#pragma GCC unroll 4
    for (int64_t j = 0; j < kV; ++j) {
      KeepSum(results, row + i, column + j * kLanes, columns, sums[i][j]);
    }
  }
}

// The same of one row.
template <int64_t kV>
MXPLAN_INLINE void ValuesOfRow(const float* p, Rows value, int64_t keys, int64_t column,
                               int64_t columns, const Results& results) {
  Vec sums[2][kV] = {};  // of every other key, so that additions do not wait for each other
  const float* from = value.data + column;
  int64_t k = 0;
  for (; k + 2 <= keys; k += 2) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i) {
      const float* row = from + (k + i) * value.stride;
#pragma GCC unroll 4
      for (int64_t j = 0; j < kV; ++j) {
        sums[i][j] += Load(row + j * kLanes) * p[k + i];
      }
    }
  }
#pragma GCC unroll 4
  for (int64_t j = 0; j < kV; ++j) {
    Vec sum = sums[0][j] + sums[1][j];
    if (k < keys) sum += Load(from + k * value.stride + j * kLanes) * p[k];
    KeepSum(results, 0, column + j * kLanes, columns, sum);
  }
}

template <int64_t kR>
void Values(const float* p, int64_t along, int64_t across, Rows value, int64_t keys, int64_t rows,
            int64_t columns, const Results& results) {
  constexpr int64_t kV = MXPLAN_VALUES;
  for (int64_t row = 0; row < rows; row += kR) {
    const float* from = p + row * across;
    int64_t column = 0;
    for (; column + (kV - 1) * kLanes < columns; column += kV * kLanes) {
      ValuesOf<kR, kV>(from, along, across, value, keys, row, rows, column, columns, results);
    }
    for (; column < columns; column += kLanes) {
      ValuesOf<kR, 1>(from, along, across, value, keys, row, rows, column, columns, results);
    }
  }
}

// The values of one row.
inline void RowValues(const float* p, Rows value, int64_t keys, int64_t columns,
                      const Results& results) {
  constexpr int64_t kV = 2 * MXPLAN_VALUES;
  int64_t column = 0;
  for (; column + (kV - 1) * kLanes < columns; column += kV * kLanes) {
    ValuesOfRow<kV>(p, value, keys, column, columns, results);
  }
  for (; column < columns; column += kLanes) {
    ValuesOfRow<1>(p, value, keys, column, columns, results);
  }
}

}  // namespace
}  // namespace mxplan::attention

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_PRODUCTS_IMPL_H_
