// Neighbours of points that lie anywhere in an image, and their weights.
//
// Places are worked out in float64, where those of float32 coordinates are exact.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_SAMPLING_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_SAMPLING_IMPL_H_

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

// Neighbours along one axis, those of one term of all points side by side.
struct AxisTerms {
  int32_t index[kMostAxisTerms][kMostSampled];
  float weights[kMostAxisTerms][kMostSampled];
  uint8_t outside[kMostSampled];  // a bit for each term
};

constexpr double kFar = 1e9;  // farther is no other place than this

// Numbers of an axis that its points share.
struct Span {
  double last;          // the last index
  double from, length;  // where a mirrored image begins, and how far it goes
  bool one_point;       // it goes nowhere
};

// A place in the image for one that is outside of it; where zeros count it stays there.
template <Beyond kBeyond>
MXPLAN_INLINE double Inside(double place, const Span& span) {
  if constexpr (kBeyond == Beyond::kZeros) return place;
  if constexpr (kBeyond == Beyond::kReflection) {
    const double from = place < span.from ? span.from - place : place - span.from;
    const double times = __builtin_floor(from / span.length);
    const double rest = from - times * span.length;
    const bool back = times - 2.0 * __builtin_floor(0.5 * times) > 0.5;
    place = (back ? span.length - rest : rest) + span.from;
    place = span.one_point ? 0.0 : place;
  }
  place = place < 0.0 ? 0.0 : place;
  return place > span.last ? span.last : place;
}

// The index of one term, which is `at` or one mirrored, and whether it lies outside: 1 or 0.
template <Beyond kBeyond, bool kMirrored>
MXPLAN_INLINE int32_t IndexOf(double at, const Span& span, int32_t* outside) {
  if constexpr (kMirrored) at = Inside<kBeyond>(at, span);
  *outside = at < 0.0 || at > span.last;
  at = at < 0.0 ? 0.0 : at;
  return static_cast<int32_t>(at > span.last ? span.last : at);
}

template <Sampling kSampling, Beyond kBeyond>
void TermsOfAxis(const SampledAxis& axis, int64_t count, AxisTerms* terms) {
  const bool corners = axis.corners;
  const auto extent = static_cast<double>(axis.extent);
  const Span span{extent - 1.0, corners ? 0.0 : -0.5, corners ? extent - 1.0 : extent,
                  corners && axis.extent == 1};
  const double scale = 0.5 * span.length, shift = corners ? 0.0 : -0.5;
  const float* __restrict at = axis.at;
  const int64_t step = axis.step;
  MXPLAN_FOR_EACH(i, count) {
    double given = at[i * step];
    given = given == given ? given : -1.0;  // as PyTorch has it
    given = given < -kFar ? -kFar : given > kFar ? kFar : given;
    const double place = (given + 1.0) * scale + shift;
    int32_t outside[4] = {};
    if constexpr (kSampling == Sampling::kNearest) {
      const double near = __builtin_nearbyint(Inside<kBeyond>(place, span));
      terms->index[0][i] = IndexOf<kBeyond, false>(near, span, outside);
      terms->weights[0][i] = 1.0F;
    } else if constexpr (kSampling == Sampling::kLinear) {
      const double inside = Inside<kBeyond>(place, span), low = __builtin_floor(inside);
      const double t = inside - low;
      terms->index[0][i] = IndexOf<kBeyond, false>(low, span, outside);
      terms->index[1][i] = IndexOf<kBeyond, false>(low + 1.0, span, outside + 1);
      terms->weights[0][i] = static_cast<float>(1.0 - t);
      terms->weights[1][i] = static_cast<float>(t);
    } else {
      const double low = __builtin_floor(place);
      constexpr bool kMirrored = kBeyond != Beyond::kZeros;
      for (int k = 0; k < 4; ++k) {
        terms->index[k][i] = IndexOf<kBeyond, kMirrored>(low + (k - 1.0), span, outside + k);
      }
      constexpr double kAlpha = -0.75;
      const double t = place - low, u = 1.0 - t;
      terms->weights[0][i] = static_cast<float>(kAlpha * t * u * u);
      terms->weights[1][i] =
          static_cast<float>(((kAlpha + 2.0) * t - (kAlpha + 3.0)) * t * t + 1.0);
      terms->weights[2][i] =
          static_cast<float>(((kAlpha + 2.0) * u - (kAlpha + 3.0)) * u * u + 1.0);
      terms->weights[3][i] = static_cast<float>(kAlpha * u * t * t);
    }
    terms->outside[i] =
        static_cast<uint8_t>(outside[0] | outside[1] << 1 | outside[2] << 2 | outside[3] << 3);
  }
}

template <Sampling kSampling>
void TermsOfAxis(Beyond beyond, const SampledAxis& axis, int64_t count, AxisTerms* terms) {
  switch (beyond) {
    case Beyond::kZeros:
      return TermsOfAxis<kSampling, Beyond::kZeros>(axis, count, terms);
    case Beyond::kBorder:
      return TermsOfAxis<kSampling, Beyond::kBorder>(axis, count, terms);
    case Beyond::kReflection:
      return TermsOfAxis<kSampling, Beyond::kReflection>(axis, count, terms);
  }
}

int64_t SamplePointsKernel(Sampling sampling, Beyond beyond, const SampledAxis* axes, int64_t rank,
                           int64_t count, int32_t* index, float* weights, uint64_t* outside) {
  AxisTerms own;
  uint8_t any[kMostSampled] = {};
  uint8_t bits[kMostAxes][kMostSampled];
  int64_t terms = 1;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const SampledAxis& one = axes[axis];
    int64_t more = 1;
    if (sampling == Sampling::kNearest) {
      TermsOfAxis<Sampling::kNearest>(beyond, one, count, &own);
    } else if (sampling == Sampling::kLinear) {
      TermsOfAxis<Sampling::kLinear>(beyond, one, count, &own);
      more = 2;
    } else {
      TermsOfAxis<Sampling::kCubic>(beyond, one, count, &own);
      more = 4;
    }
    const auto extent = static_cast<int32_t>(one.extent);
    // From the last to the first: a term that is spread has been read before it is written.
    for (int64_t term = axis == 0 ? 0 : terms - 1; term >= 0; --term) {
      for (int64_t k = more - 1; k >= 0; --k) {
        int32_t* to = index + (term * more + k) * count;
        float* to_weights = weights + (term * more + k) * count;
        if (axis == 0) {
          MXPLAN_FOR_EACH(i, count) {
            to[i] = own.index[k][i];
            to_weights[i] = own.weights[k][i];
          }
          continue;
        }
        const int32_t* from = index + term * count;
        const float* from_weights = weights + term * count;
        MXPLAN_FOR_EACH(i, count) {
          to[i] = from[i] * extent + own.index[k][i];
          to_weights[i] = from_weights[i] * own.weights[k][i];
        }
      }
    }
    terms *= more;
    MXPLAN_FOR_EACH(i, count) {
      bits[axis][i] = own.outside[i];
      any[i] |= own.outside[i];
    }
  }
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    outside[i] = 0;
    if (any[i] == 0) continue;
    ++found;
    for (int64_t term = 0; term < terms; ++term) {
      int64_t rest = term;
      uint64_t out = 0;
      for (int64_t axis = rank; axis-- > 0;) {
        const int64_t of = sampling == Sampling::kNearest  ? 1
                           : sampling == Sampling::kLinear ? 2
                                                           : 4;
        out |= static_cast<uint64_t>(bits[axis][i]) >> (rest % of) & 1;
        rest /= of;
      }
      outside[i] |= out << term;
    }
  }
  return found;
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_SAMPLING_IMPL_H_
