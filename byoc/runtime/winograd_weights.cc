// G g G' for every filter; see winograd_weights.h.
//
// Row i of G is [1, p, p^2] / product over the other points q of (p - q), for the interpolation
// point p; that of the point infinity is [0, 0, 1].
#include "winograd_weights.h"

#include <algorithm>
#include <array>
#include <vector>

namespace mxplan::winograd {
namespace {

using Row = std::array<double, 3>;

std::vector<Row> FilterMatrix(Variant variant) {
  std::vector<double> points = variant == Variant::kF4
                                   ? std::vector<double>{0, 0.625, -0.625, 1.5, -1.5}
                                   : std::vector<double>{0, 1, -1};
  std::vector<Row> rows;
  for (size_t i = 0; i < points.size(); ++i) {
    double product = 1;
    for (size_t j = 0; j < points.size(); ++j) product *= i == j ? 1 : points[i] - points[j];
    rows.push_back({1 / product, points[i] / product, points[i] * points[i] / product});
  }
  rows.push_back({0, 0, 1});
  return rows;
}

constexpr int64_t kTogether = 16;  // filters of one step: their results stand side by side

using Filters = std::array<double, kTogether>;

// The 3x3 elements of `count` filters of one channel; zeros behind them.
std::array<Filters, 9> ReadFilters(const float* filters, const dnnl::memory::dims& strides,
                                   int64_t count) {
  std::array<Filters, 9> elements{};
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t e = 0; e < 9; ++e) {
      elements[e][k] = filters[k * strides[0] + e / 3 * strides[2] + e % 3 * strides[3]];
    }
  }
  return elements;
}

// row[0] * a + row[1] * b + row[2] * c for all filters.
Filters Combine(const Row& row, const Filters& a, const Filters& b, const Filters& c) {
  Filters sum;
  for (int64_t k = 0; k < kTogether; ++k) sum[k] = row[0] * a[k] + row[1] * b[k] + row[2] * c[k];
  return sum;
}

// Filters from `filters` on, all of channel c; `out` is their first column in the first matrix.
void TransformTogether(const std::vector<Row>& g, const float* filters,
                       const dnnl::memory::dims& strides, int64_t count, int64_t matrix,
                       float* out) {
  const std::array<Filters, 9> element = ReadFilters(filters, strides, count);
  for (const Row& row : g) {
    std::array<Filters, 3> half;  // this row of G g
    for (int x = 0; x < 3; ++x) {
      half[x] = Combine(row, element[x], element[3 + x], element[6 + x]);
    }
    for (const Row& column : g) {
      Filters sum = Combine(column, half[0], half[1], half[2]);
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<float>(sum[k]);
      out += matrix;
    }
  }
}

}  // namespace

void TransformWeights(Variant variant, const dnnl::memory::desc& desc, const float* filters,
                      int64_t rows, int64_t columns, float* matrices) {
  const std::vector<Row> g = FilterMatrix(variant);
  const dnnl::memory::dims dims = desc.get_dims(), strides = desc.get_strides();
  const auto elements = static_cast<int64_t>(g.size() * g.size());
#pragma omp parallel for schedule(static)
  for (int64_t c = 0; c < rows; ++c) {
    float* row = matrices + c * columns;
    int64_t filled = c < dims[1] ? dims[0] : 0;
    for (int64_t e = 0; e < elements; ++e) {
      std::fill(row + e * rows * columns + filled, row + e * rows * columns + columns, 0.0F);
    }
    for (int64_t k = 0; k < filled; k += kTogether) {
      TransformTogether(g, filters + k * strides[0] + c * strides[1], strides,
                        std::min(kTogether, filled - k), rows * columns, row + k);
    }
  }
}

}  // namespace mxplan::winograd
