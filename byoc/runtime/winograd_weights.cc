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

}  // namespace

void TransformWeights(Variant variant, const dnnl::memory::desc& desc, const float* filters,
                      int64_t rows, int64_t columns, float* matrices) {
  const std::vector<Row> g = FilterMatrix(variant);
  const size_t size = g.size();
  const dnnl::memory::dims dims = desc.get_dims(), strides = desc.get_strides();
  std::fill_n(matrices, static_cast<int64_t>(size * size) * rows * columns, 0.0F);
  std::vector<Row> half(size);  // G g
  for (int64_t c = 0; c < dims[1]; ++c) {
    for (int64_t k = 0; k < dims[0]; ++k) {
      const float* filter = filters + k * strides[0] + c * strides[1];
      for (size_t i = 0; i < size; ++i) {
        for (int64_t x = 0; x < 3; ++x) {
          half[i][x] = 0;
          for (int64_t y = 0; y < 3; ++y) {
            half[i][x] += g[i][y] * static_cast<double>(filter[y * strides[2] + x * strides[3]]);
          }
        }
      }
      for (size_t i = 0; i < size; ++i) {
        for (size_t j = 0; j < size; ++j) {
          double sum = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
          matrices[(static_cast<int64_t>(i * size + j) * rows + c) * columns + k] =
              static_cast<float>(sum);
        }
      }
    }
  }
}

}  // namespace mxplan::winograd
