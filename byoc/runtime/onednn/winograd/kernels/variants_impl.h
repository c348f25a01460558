// The variants' transforms of one line of numbers: of filters, of patches and of their products;
// one of the parts of kernels_impl.h.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_VARIANTS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_VARIANTS_IMPL_H_

#include "onednn/vectors/lanes_impl.h"

namespace mxplan::winograd {
namespace {

struct F2 {
  static constexpr int kTile = 2;
  static constexpr int kPatch = 4;
  static MXPLAN_INLINE void Filter(const Vec* x, Vec* y) {
    Vec even = 0.5F * (x[0] + x[2]), odd = 0.5F * x[1];
    y[0] = -x[0];
    y[1] = even + odd;
    y[2] = even - odd;
    y[3] = x[2];
  }
  static MXPLAN_INLINE void Input(const Vec* x, Vec* y) {
    y[0] = x[2] - x[0];
    y[1] = x[2] + x[1];
    y[2] = x[2] - x[1];
    y[3] = x[3] - x[1];
  }
  static MXPLAN_INLINE void Output(const Vec* x, Vec* y) {
    y[0] = x[0] + (x[1] + x[2]);
    y[1] = (x[1] - x[2]) + x[3];
  }
};

// Patches of 6x6, whatever the filters.
struct SixPoints {
  static constexpr int kPatch = 6;
  static constexpr float kA = 0.625F, kB = 1.5F;  // the points are 0, kA, -kA, kB, -kB
  static constexpr float kA2 = kA * kA, kB2 = kB * kB;
  // Of G's rows: what the powers of a point are divided by.
  static constexpr double kOfA = 0.5 / (kA2 * (kA2 - kB2)), kOfB = 0.5 / (kB2 * (kB2 - kA2));
  static constexpr double kOfZero = 1.0 / (kA2 * kB2);
  template <int kSize>
  static MXPLAN_INLINE void Filters(const Vec* x, Vec* y) {
    static_assert(kSize == 3 || kSize == 5);
    constexpr auto a = static_cast<float>(kOfA), a1 = static_cast<float>(kOfA * kA);
    constexpr auto a2 = static_cast<float>(kOfA * kA2), a3 = static_cast<float>(kOfA * kA2 * kA);
    constexpr auto a4 = static_cast<float>(kOfA * kA2 * kA2);
    constexpr auto b = static_cast<float>(kOfB), b1 = static_cast<float>(kOfB * kB);
    constexpr auto b2 = static_cast<float>(kOfB * kB2), b3 = static_cast<float>(kOfB * kB2 * kB);
    constexpr auto b4 = static_cast<float>(kOfB * kB2 * kB2);
    Vec even_a = a * x[0] + a2 * x[2], odd_a = a1 * x[1];
    Vec even_b = b * x[0] + b2 * x[2], odd_b = b1 * x[1];
    if constexpr (kSize == 5) {
      even_a += a4 * x[4];
      odd_a += a3 * x[3];
      even_b += b4 * x[4];
      odd_b += b3 * x[3];
    }
    y[0] = static_cast<float>(kOfZero) * x[0];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[kSize - 1];
  }
  static MXPLAN_INLINE void Input(const Vec* x, Vec* y) {
    Vec even_a = x[4] - kB2 * x[2], odd_a = kA * (x[3] - kB2 * x[1]);
    Vec even_b = x[4] - kA2 * x[2], odd_b = kB * (x[3] - kA2 * x[1]);
    y[0] = kA2 * kB2 * x[0] + (x[4] - (kA2 + kB2) * x[2]);
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = kA2 * kB2 * x[1] + (x[5] - (kA2 + kB2) * x[3]);
  }
};

struct F4 : SixPoints {
  static constexpr int kTile = 4;
  static MXPLAN_INLINE void Filter(const Vec* x, Vec* y) { Filters<3>(x, y); }
  static MXPLAN_INLINE void Output(const Vec* x, Vec* y) {
    Vec even_a = x[1] + x[2], odd_a = x[1] - x[2];
    Vec even_b = x[3] + x[4], odd_b = x[3] - x[4];
    y[0] = x[0] + (even_a + even_b);
    y[1] = kA * odd_a + kB * odd_b;
    y[2] = kA2 * even_a + kB2 * even_b;
    y[3] = kA * kA2 * odd_a + (kB * kB2 * odd_b + x[5]);
  }
};

struct F2Of5 : SixPoints {
  static constexpr int kTile = 2;
  static MXPLAN_INLINE void Filter(const Vec* x, Vec* y) { Filters<5>(x, y); }
  static MXPLAN_INLINE void Output(const Vec* x, Vec* y) {
    y[0] = x[0] + ((x[1] + x[2]) + (x[3] + x[4]));
    y[1] = kA * (x[1] - x[2]) + (kB * (x[3] - x[4]) + x[5]);
  }
};

}  // namespace
}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_VARIANTS_IMPL_H_
