// Sines and cosines.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_ANGLES_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_ANGLES_IMPL_H_

#include <algorithm>
#include <cmath>

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

// The largest angle whose quarter turns fit 20 bits, so that their product with kQuarterHigh is
// exact.
constexpr float kLargestAngle = 1048576.0F;

// A quarter of a turn is kQuarterHigh, of 33 bits, and kQuarterLow.
constexpr double kQuarterHigh = 0x1.921fb544p+0, kQuarterLow = 0x1.0b4611a626331p-34;

// The sine of an angle that is `quarters` quarter turns ahead: what is left of it behind whole
// quarter turns is computed in float64, and then a polynomial of its sine or its cosine, whose
// largest relative error up to an eighth of a turn is 4e-9.
MXPLAN_INLINE float SineAhead(float x, int32_t quarters) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: sums with it are rounded to integers
  const double shifted = static_cast<double>(x) * 0.6366197723675814 + kShift;
  const double whole = shifted - kShift;
  const double left = (static_cast<double>(x) - whole * kQuarterHigh) - whole * kQuarterLow;
  const auto r = static_cast<float>(left);
  const int32_t turns = static_cast<int32_t>(whole) + quarters;
  const float square = r * r;
  float sine = -1.951528316e-04F;
  sine = sine * square + 8.332160762e-03F;
  sine = sine * square - 1.666665461e-01F;
  sine = sine * square * r + r;
  float cosine = 2.443315701e-05F;
  cosine = cosine * square - 1.388731625e-03F;
  cosine = cosine * square + 4.166664568e-02F;
  cosine = cosine * square * square + (1.0F - 0.5F * square);
  const float size = (turns & 1) != 0 ? cosine : sine;
  return (turns & 2) != 0 ? -size : size;
}

MXPLAN_INLINE bool IsNear(float x) { return __builtin_fabsf(x) <= kLargestAngle; }

// Larger angles, and what is no number, are left to the C library.
template <bool kCosine>
void AngleLoop(const Strided& src, const Written& dst, const Extent& extent) {
  constexpr int64_t kChunk = 256;
  constexpr int32_t kAhead = kCosine ? 1 : 0;
  for (int64_t row = 0; row < extent.rows; ++row) {
    const auto x = Row<float>(src, row, One());
    float* z = Row<float>(dst, row);
    for (int64_t begin = 0; begin < extent.count; begin += kChunk) {
      const int64_t end = std::min(begin + kChunk, extent.count);
      int32_t near = 1;
      for (int64_t i = begin; i < end; ++i) near &= IsNear(x[i]) ? 1 : 0;
      if (near != 0) {
        MXPLAN_FOR_EACH(i, end - begin) z[begin + i] = SineAhead(x[begin + i], kAhead);
        continue;
      }
      for (int64_t i = begin; i < end; ++i) {
        const float far = kCosine ? std::cos(x[i]) : std::sin(x[i]);
        z[i] = IsNear(x[i]) ? SineAhead(x[i], kAhead) : far;
      }
    }
  }
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_ANGLES_IMPL_H_
