// G g G' for every filter; see onednn/winograd/weights.h.
//
// Row i of G is [1, p, p^2, ...] / product over the other points q of (p - q), for the
// interpolation point p; that of the point infinity is [0, ..., 0, 1].
#include "onednn/winograd/weights.h"

#include <algorithm>
#include <array>
#include <vector>

namespace mxplan::winograd {
namespace {

template <int kSize>
using Row = std::array<double, kSize>;

template <int kSize>
std::vector<Row<kSize>> FilterMatrix(Variant variant) {
  std::vector<double> points = variant == Variant::kF2
                                   ? std::vector<double>{0, 1, -1}
                                   : std::vector<double>{0, 0.625, -0.625, 1.5, -1.5};
  std::vector<Row<kSize>> rows;
  for (size_t i = 0; i < points.size(); ++i) {
    double product = 1, power = 1;
    for (size_t j = 0; j < points.size(); ++j) product *= i == j ? 1 : points[i] - points[j];
    Row<kSize> row;
    for (double& entry : row) {
      entry = power / product;
      power *= points[i];
    }
    rows.push_back(row);
  }
  Row<kSize> infinity{};
  infinity.back() = 1;
  rows.push_back(infinity);
  return rows;
}

constexpr int64_t kTogether = 16;  // filters of one step: their results stand side by side

using Filters = std::array<double, kTogether>;

// Elements of `count` filters of one channel, `strides` [K, C, y, x]; zeros behind them.
template <int kSize>
std::array<Filters, kSize * kSize> ReadFilters(const float* filters, const int64_t* strides,
                                               int64_t count) {
  std::array<Filters, kSize * kSize> elements{};
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t e = 0; e < kSize * kSize; ++e) {
      elements[e][k] = filters[k * strides[0] + e / kSize * strides[2] + e % kSize * strides[3]];
    }
  }
  return elements;
}

// row[0] * from[0] + row[1] * from[step] + ... for all filters.
template <int kSize>
Filters Combine(const Row<kSize>& row, const Filters* from, int step) {
  Filters sum;
  for (int64_t k = 0; k < kTogether; ++k) {
    sum[k] = row[0] * from[0][k];
    for (int i = 1; i < kSize; ++i) sum[k] += row[i] * from[i * step][k];
  }
  return sum;
}

// Filters from `filters` on, all of one channel; `out` is their first column in the first matrix.
template <int kSize>
void TransformTogether(const std::vector<Row<kSize>>& g, const float* filters,
                       const int64_t* strides, int64_t count, int64_t matrix, float* out) {
  const auto element = ReadFilters<kSize>(filters, strides, count);
  for (const Row<kSize>& row : g) {
    std::array<Filters, kSize> half;  // this row of G g
    for (int x = 0; x < kSize; ++x) half[x] = Combine<kSize>(row, &element[x], kSize);
    for (const Row<kSize>& column : g) {
      Filters sum = Combine<kSize>(column, half.data(), 1);
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<float>(sum[k]);
      out += matrix;
    }
  }
}

// `dims` and `strides` are [K, C, y, x].
template <int kSize>
void Transform(Variant variant, const int64_t* dims, const int64_t* strides, const float* filters,
               int64_t rows, int64_t columns, float* matrices) {
  const std::vector<Row<kSize>> g = FilterMatrix<kSize>(variant);
  const int64_t elements = PatchElements(variant);
#pragma omp parallel for schedule(static)
  for (int64_t c = 0; c < rows; ++c) {
    float* row = matrices + c * columns;
    int64_t filled = c < dims[1] ? dims[0] : 0;
    for (int64_t e = 0; e < elements; ++e) {
      std::fill(row + e * rows * columns + filled, row + e * rows * columns + columns, 0.0F);
    }
    for (int64_t k = 0; k < filled; k += kTogether) {
      TransformTogether<kSize>(g, filters + k * strides[0] + c * strides[1], strides,
                               std::min(kTogether, filled - k), rows * columns, row + k);
    }
  }
}

}  // namespace

void TransformWeights(Variant variant, int64_t group, bool turned, const dnnl::memory::desc& desc,
                      const float* filters, int64_t rows, int64_t columns, float* matrices) {
  dnnl::memory::dims dims = desc.get_dims(), strides = desc.get_strides();
  const size_t first = dims.size() - 4;  // the axis of output channels
  if (first > 0) filters += group * strides[0];
  for (size_t axis = first + 2; turned && axis < dims.size(); ++axis) {
    filters += (dims[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  auto transform = FilterSize(variant) == 5 ? Transform<5> : Transform<3>;
  transform(variant, &dims[first], &strides[first], filters, rows, columns, matrices);
}

}  // namespace mxplan::winograd
