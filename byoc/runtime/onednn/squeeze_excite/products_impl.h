// Small products of rows by matrices, and the functions behind them; included once for each
// instruction set.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_PRODUCTS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_PRODUCTS_IMPL_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "onednn/post_ops/apply_impl.h"
#include "onednn/squeeze_excite/kernels.h"
#include "onednn/squeeze_excite/runs_impl.h"

namespace mxplan::squeeze_excite {
namespace {

constexpr int kSamples = 4;  // that share what is read of weights

inline void Apply(const post_ops::PostOp& function, int64_t begin, int64_t end, float* numbers) {
  ForVectors(end - begin, [&](int64_t at, auto vectors, auto some) {
    constexpr int64_t kVectors = decltype(vectors)::value;
    for (int64_t v = 0; v < kVectors; ++v) {
      float* place = numbers + begin + at + v * kLanes;
      some.To(place, mxplan::Apply(function, some.From(place), Vec{}));
    }
  });
}

// `kCount` samples from one reading of the weights.
template <typename Type, int kCount>
MXPLAN_INLINE void RowsOf(const Product& of, const float* src, int64_t begin, int64_t end,
                          float* dst) {
  constexpr int64_t kParts = kCount == 1 ? 4 : 1;
  for (int64_t row = begin; row < end; ++row) {
    const Type* weights = As<Type>(of.weights) + row * of.inputs;
    Vec sums[kCount][kParts] = {};
    int64_t at = 0;
    for (; at + kParts * kLanes <= of.inputs; at += kParts * kLanes) {
#pragma GCC unroll 4
      for (int64_t part = 0; part < kParts; ++part) {
        const Vec factors = LoadAll(weights + at + part * kLanes);
#pragma GCC unroll 4
        for (int s = 0; s < kCount; ++s) {
          sums[s][part] += factors * Load(src + s * of.src_stride + at + part * kLanes);
        }
      }
    }
    for (; at + kLanes <= of.inputs; at += kLanes) {
      const Vec factors = LoadAll(weights + at);
      for (int s = 0; s < kCount; ++s) {
        sums[s][0] += factors * Load(src + s * of.src_stride + at);
      }
    }
    if (at < of.inputs) {
      const Vec factors = LoadFirst(weights + at, of.inputs - at);
      for (int s = 0; s < kCount; ++s) {
        sums[s][0] += factors * LoadFirst(src + s * of.src_stride + at, of.inputs - at);
      }
    }
    for (int s = 0; s < kCount; ++s) {
      Vec sum = sums[s][0];
      for (int64_t part = 1; part < kParts; ++part) sum += sums[s][part];
      dst[s * of.dst_stride + row] = Across(sum) + (of.bias ? of.bias[row] : 0.0F);
    }
  }
}

// Weights are read as they stand, one row after the other; sums are in the nearest cache.
template <typename Type, int kCount>
MXPLAN_INLINE void ColumnsOf(const Product& of, const float* src, int64_t begin, int64_t end,
                             float* dst) {
  for (int s = 0; s < kCount; ++s) {
    float* sums = dst + s * of.dst_stride;
    if (of.bias != nullptr) {
      std::copy(of.bias + begin, of.bias + end, sums + begin);
    } else {
      std::fill(sums + begin, sums + end, 0.0F);
    }
  }
  for (int64_t input = 0; input < of.inputs; ++input) {
    const Type* weights = As<Type>(of.weights) + input * of.outputs + begin;
    ForVectors(end - begin, [&](int64_t at, auto vectors, auto some) {
      constexpr int64_t kVectors = decltype(vectors)::value;
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vec factors = some.From(weights + at + v * kLanes);
#pragma GCC unroll 4
        for (int s = 0; s < kCount; ++s) {
          float* sum = dst + s * of.dst_stride + begin + at + v * kLanes;
          some.To(sum, some.From(sum) + factors * src[s * of.src_stride + input]);
        }
      }
    });
  }
}

// Calls work(count, src, dst) for `count` samples at once, a constant, then the function for all.
template <typename Work>
MXPLAN_INLINE void ForSamples(const Product& of, const float* src, int64_t begin, int64_t end,
                              float* dst, const Work& work) {
  int64_t sample = 0;
  for (; sample + kSamples <= of.samples; sample += kSamples) {
    work(std::integral_constant<int, kSamples>(), src + sample * of.src_stride,
         dst + sample * of.dst_stride);
  }
  for (; sample < of.samples; ++sample) {
    work(std::integral_constant<int, 1>(), src + sample * of.src_stride,
         dst + sample * of.dst_stride);
  }
  for (sample = 0; sample < of.samples; ++sample) {
    Apply(of.function, begin, end, dst + sample * of.dst_stride);
  }
}

template <typename Type>
void ByRows(const Product& of, const float* src, int64_t begin, int64_t end, float* dst) {
  ForSamples(of, src, begin, end, dst, [&](auto count, const float* x, float* y) {
    RowsOf<Type, decltype(count)::value>(of, x, begin, end, y);
  });
}

template <typename Type>
void ByColumns(const Product& of, const float* src, int64_t begin, int64_t end, float* dst) {
  ForSamples(of, src, begin, end, dst, [&](auto count, const float* x, float* y) {
    ColumnsOf<Type, decltype(count)::value>(of, x, begin, end, y);
  });
}

}  // namespace
}  // namespace mxplan::squeeze_excite

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_PRODUCTS_IMPL_H_
