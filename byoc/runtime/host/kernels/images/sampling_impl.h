// Neighbours of points that lie anywhere in an image, and their weights.
//
// Places are worked out in float64, where those of float32 coordinates are exact.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_IMAGES_SAMPLING_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_IMAGES_SAMPLING_IMPL_H_

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

// Neighbours along one axis, those of one term of all points side by side; an index is below 0
// where nothing counts.
struct AxisTerms {
  int32_t index[kMostAxisTerms][kMostSampled];
  float weights[kMostAxisTerms][kMostSampled];
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

// The index of a neighbour, -1 where it is outside.
template <Beyond kBeyond, bool kMirrored>
MXPLAN_INLINE int32_t IndexOf(double at, const Span& span) {
  if constexpr (kMirrored) at = Inside<kBeyond>(at, span);
  at = at < 0.0 ? -1.0 : at;
  return static_cast<int32_t>(at > span.last ? -1.0 : at);
}

// The places of points: 0 is the first pixel, 1 the next.
MXPLAN_INLINE void PlacesOf(const SampledAxis& axis, const Span& span, int64_t count,
                            double* places) {
  const double scale = 0.5 * span.length, shift = axis.corners ? 0.0 : -0.5;
  const float* at = axis.at;
  MXPLAN_FOR_EACH(i, count) {
    double given = at[i];
    given = given == given ? given : -1.0;  // as PyTorch has it
    given = given < -kFar ? -kFar : given;
    given = given > kFar ? kFar : given;
    places[i] = (given + 1.0) * scale + shift;
  }
}

template <Beyond kBeyond>
void TermsOfAxis(Sampling sampling, const SampledAxis& axis, int64_t count, AxisTerms* terms) {
  const auto extent = static_cast<double>(axis.extent);
  const Span span{extent - 1.0, axis.corners ? 0.0 : -0.5, axis.corners ? extent - 1.0 : extent,
                  axis.corners && axis.extent == 1};
  double places[kMostSampled];
  PlacesOf(axis, span, count, places);
  if (sampling == Sampling::kNearest) {
    MXPLAN_FOR_EACH(i, count) {
      const double near = __builtin_nearbyint(Inside<kBeyond>(places[i], span));
      terms->index[0][i] = IndexOf<kBeyond, false>(near, span);
    }
    MXPLAN_FOR_EACH(i, count) terms->weights[0][i] = 1.0F;
    return;
  }
  if (sampling == Sampling::kLinear) {
    MXPLAN_FOR_EACH(i, count) {
      const double place = Inside<kBeyond>(places[i], span), low = __builtin_floor(place);
      terms->index[0][i] = IndexOf<kBeyond, false>(low, span);
      terms->index[1][i] = IndexOf<kBeyond, false>(low + 1.0, span);
      const double t = place - low;
      terms->weights[0][i] = static_cast<float>(1.0 - t);
      terms->weights[1][i] = static_cast<float>(t);
    }
    return;
  }
  constexpr bool kMirrored = kBeyond != Beyond::kZeros;
  constexpr double kAlpha = -0.75;
  for (int k = 0; k < 4; ++k) {
    const double away = k - 1.0;
    MXPLAN_FOR_EACH(i, count) {
      const double low = __builtin_floor(places[i]);
      terms->index[k][i] = IndexOf<kBeyond, kMirrored>(low + away, span);
    }
  }
  MXPLAN_FOR_EACH(i, count) {
    const double t = places[i] - __builtin_floor(places[i]), u = 1.0 - t;
    terms->weights[0][i] = static_cast<float>(kAlpha * t * u * u);
    terms->weights[1][i] = static_cast<float>(((kAlpha + 2.0) * t - (kAlpha + 3.0)) * t * t + 1.0);
    terms->weights[2][i] = static_cast<float>(((kAlpha + 2.0) * u - (kAlpha + 3.0)) * u * u + 1.0);
    terms->weights[3][i] = static_cast<float>(kAlpha * u * t * t);
  }
}

void TermsOfAxis(Sampling sampling, Beyond beyond, const SampledAxis& axis, int64_t count,
                 AxisTerms* terms) {
  switch (beyond) {
    case Beyond::kZeros:
      return TermsOfAxis<Beyond::kZeros>(sampling, axis, count, terms);
    case Beyond::kBorder:
      return TermsOfAxis<Beyond::kBorder>(sampling, axis, count, terms);
    case Beyond::kReflection:
      return TermsOfAxis<Beyond::kReflection>(sampling, axis, count, terms);
  }
}

bool SamplePointsKernel(Sampling sampling, Beyond beyond, const SampledAxis* axes, int64_t rank,
                        const int32_t* images, int64_t count, int32_t* index, float* weights) {
  AxisTerms own;
  const int64_t more = sampling == Sampling::kNearest ? 1 : sampling == Sampling::kLinear ? 2 : 4;
  int64_t terms = 1;
  int32_t lowest = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    TermsOfAxis(sampling, beyond, axes[axis], count, &own);
    const auto extent = static_cast<int32_t>(axes[axis].extent);
    for (int64_t k = 0; k < more; ++k) {
      MXPLAN_FOR_EACH(i, count) lowest = own.index[k][i] < lowest ? own.index[k][i] : lowest;
    }
    // From the last to the first: a term that is spread has been read before it is written.
    for (int64_t term = terms; term-- > 0;) {
      const int32_t* from = index + term * count;
      const float* from_weights = weights + term * count;
      for (int64_t k = more; k-- > 0;) {
        int32_t* to = index + (term * more + k) * count;
        float* to_weights = weights + (term * more + k) * count;
        const int32_t* along = own.index[k];
        const float* share = own.weights[k];
        if (axis == 0) {
          MXPLAN_FOR_EACH(i, count) {
            const int32_t at = images[i] * extent + along[i];
            to[i] = along[i] < 0 ? -1 : at;
          }
          MXPLAN_FOR_EACH(i, count) to_weights[i] = share[i];
          continue;
        }
        MXPLAN_FOR_EACH(i, count) {
          const int32_t at = from[i] * extent + along[i];
          to[i] = (from[i] | along[i]) < 0 ? -1 : at;
        }
        MXPLAN_FOR_EACH(i, count) to_weights[i] = from_weights[i] * share[i];
      }
    }
    terms *= more;
  }
  return lowest < 0;
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_IMAGES_SAMPLING_IMPL_H_
