// Images and volumes of other extents: nearest, linear and cubic, by all rules for coordinates.
//
// A point of dst lies at a fraction of src's indices, which is kept as one: rounding is decided
// exactly.  Along the last axis a point is a sum of few neighbours; along the others whole rows are
// summed first.
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "host/steps/builders.h"
#include "host/steps/images.h"

namespace mxplan::host {
namespace {

constexpr int64_t kMostPoints = 1 << 24;  // along one axis, whose neighbours are kept

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// The place of a point of dst in src: `above / below`, with a divisor above 0.
struct Fraction {
  int64_t above = 0, below = 1;
};

using Coordinates = Fraction (*)(int64_t at, int64_t in, int64_t out);

struct NamedRule {
  std::string_view name;
  Coordinates coordinates;
};

constexpr NamedRule kCoordinates[] = {
    {"half_pixel", [](int64_t at, int64_t in,
                      int64_t out) { return Fraction{(2 * at + 1) * in - out, 2 * out}; }},
    {"pytorch_half_pixel",
     [](int64_t at, int64_t in, int64_t out) {
       return out > 1 ? Fraction{(2 * at + 1) * in - out, 2 * out} : Fraction{};
     }},
    {"align_corners",
     [](int64_t at, int64_t in, int64_t out) {
       return out > 1 ? Fraction{at * (in - 1), out - 1} : Fraction{};
     }},
    {"asymmetric", [](int64_t at, int64_t in, int64_t out) { return Fraction{at * in, out}; }},
    {"tf_half_pixel_for_nn",
     [](int64_t at, int64_t in, int64_t out) { return Fraction{(2 * at + 1) * in, 2 * out}; }},
};

int64_t Rounded(const Fraction& f, const std::string& rounding) {
  if (rounding == "floor") return FloorDiv(f.above, f.below);
  if (rounding == "ceil") return -FloorDiv(-f.above, f.below);
  if (rounding == "round_prefer_floor") return -FloorDiv(f.below - 2 * f.above, 2 * f.below);
  if (rounding == "round_prefer_ceil") return FloorDiv(2 * f.above + f.below, 2 * f.below);
  if (rounding == "round_prefer_even") {
    const int64_t low = FloorDiv(f.above, f.below), twice = 2 * (f.above - low * f.below);
    return low + (twice > f.below || (twice == f.below && low % 2 != 0) ? 1 : 0);
  }
  ThrowUnsupported("rounding ", rounding, ", which the host library has not");
}

// The neighbours of each point along one axis and their weights: `terms` for each point, the first
// ones of all points in front.
struct Taps {
  int64_t terms = 1, points = 0;
  std::vector<int32_t> index;
  std::vector<float> weights;
};

// Keys's spline for a point at the fraction `t` behind index `low`.
std::array<double, 4> SplineWeights(const Step& step, double t, int64_t low, int64_t in) {
  const double alpha = RealOf(step, "alpha"), t2 = t * t, t3 = t2 * t;
  std::array<double, 4> w = {alpha * (t3 - 2 * t2 + t), (alpha + 2) * t3 - (3 + alpha) * t2 + 1,
                             -(alpha + 2) * t3 + (3 + 2 * alpha) * t2 - alpha * t,
                             -alpha * t3 + alpha * t2};
  if (!FlagOf(step, "inside_only")) return w;
  double sum = 0;
  for (int64_t k = 0; k < 4; ++k) {
    if (low - 1 + k < 0 || low - 1 + k >= in) w[k] = 0;
    sum += w[k];
  }
  for (double& weight : w) weight /= sum;
  return w;
}

int64_t TermsOf(const std::string& algorithm) {
  if (algorithm == "nearest") return 1;
  if (algorithm == "linear") return 2;
  if (algorithm == "cubic") return 4;
  ThrowUnsupported("algorithm ", algorithm, ", which the host library has not");
}

Taps TapsOf(const Step& step, int64_t in, int64_t out) {
  const std::string& name = TextOf(step, "coordinates");
  const auto* rule = std::find_if(std::begin(kCoordinates), std::end(kCoordinates),
                                  [&](const NamedRule& one) { return one.name == name; });
  if (rule == std::end(kCoordinates)) {
    ThrowUnsupported("coordinates ", name, ", which the host library has not");
  }
  if (std::max(in, out) > kMostPoints) {
    ThrowUnsupported("an axis of ", std::max(in, out), " points, expected at most ", kMostPoints);
  }
  Taps taps;
  taps.terms = TermsOf(TextOf(step, "algorithm"));
  taps.points = out;
  taps.index.resize(static_cast<size_t>(taps.terms * out));
  taps.weights.resize(taps.index.size());
  for (int64_t at = 0; at < out; ++at) {
    const Fraction f = rule->coordinates(at, in, out);
    const int64_t low = FloorDiv(f.above, f.below);
    const double t = static_cast<double>(f.above - low * f.below) / static_cast<double>(f.below);
    auto set = [&](int64_t term, int64_t index, double weight) {
      const auto place = static_cast<size_t>(term * out + at);
      taps.index[place] = static_cast<int32_t>(std::clamp<int64_t>(index, 0, in - 1));
      taps.weights[place] = static_cast<float>(weight);
    };
    if (taps.terms == 1) {
      set(0, Rounded(f, TextOf(step, "rounding")), 1.0);
    } else if (taps.terms == 2) {
      set(0, low, 1.0 - t);
      set(1, low + 1, t);
    } else {
      const std::array<double, 4> weights = SplineWeights(step, t, low, in);
      for (int64_t k = 0; k < 4; ++k) set(k, low - 1 + k, weights[static_cast<size_t>(k)]);
    }
  }
  return taps;
}

struct Resize {
  Images src, dst;
  std::vector<Taps> taps;  // of each spatial axis
  int64_t rows_of_plane = 1, terms_of_row = 1;
  int64_t row_elements = 0;  // of src

  // Row `row` of all rows of dst; `sums` has room for a row of src.
  void Row(const float* from, float* to, int64_t row, float* sums) const {
    const size_t last = taps.size() - 1;
    int64_t rest = row % rows_of_plane;
    const int64_t plane = row / rows_of_plane;
    from += plane / src.planes * src.sample_stride + plane % src.planes * src.plane_stride;
    to += plane / dst.planes * dst.sample_stride + plane % dst.planes * dst.plane_stride;
    const float* rows[16] = {from};
    float weights[16] = {1.0F};
    int64_t terms = 1;
    for (size_t axis = last; axis-- > 0;) {
      const int64_t at = rest % dst.extents[axis], own = taps[axis].terms;
      rest /= dst.extents[axis];
      to += at * dst.strides[axis];
      for (int64_t i = terms; i-- > 0;) {
        const float* row_before = rows[i];
        const float weight_before = weights[i];
        for (int64_t k = own; k-- > 0;) {
          const auto tap = static_cast<size_t>(k * taps[axis].points + at);
          rows[k * terms + i] = row_before + taps[axis].index[tap] * src.strides[axis];
          weights[k * terms + i] = weight_before * taps[axis].weights[tap];
        }
      }
      terms *= own;
    }
    const Taps& along = taps[last];
    if (along.terms == 1) {
      return KernelsHere().interpolate(rows[0], src.extents.back(), along.index.data(), nullptr, 1,
                                       src.inner, to, along.points);
    }
    KernelsHere().weighted_sum(rows, weights, terms, sums, row_elements);
    KernelsHere().interpolate(sums, src.extents.back(), along.index.data(), along.weights.data(),
                              along.terms, src.inner, to, dst.extents.back());
  }
};

}  // namespace

void BuildResize(StepBuilder* b) {
  if (b->Dtype("src") != "float32") ThrowUnsupported("src: element type ", b->Dtype("src"));
  auto resize = std::make_shared<Resize>();
  resize->src = ImagesOf(b->Get("src"));
  resize->dst = ImagesOf(b->Get("dst"));
  const Images &src = resize->src, &dst = resize->dst;
  if (src.inner != dst.inner || src.planes != dst.planes) {
    ThrowUnsupported("src in layout ", b->Get("src").tag, " and dst in ", b->Get("dst").tag);
  }
  for (size_t i = 0; i < src.extents.size(); ++i) {
    resize->taps.push_back(TapsOf(b->step(), src.extents[i], dst.extents[i]));
    if (i + 1 < src.extents.size()) {
      resize->rows_of_plane *= dst.extents[i];
      resize->terms_of_row *= resize->taps.back().terms;
    }
  }
  resize->row_elements = src.extents.back() * src.inner;
  const int64_t rows = dst.samples * dst.planes * resize->rows_of_plane;
  const int64_t room = (std::max(resize->row_elements, kMostLanes) * 4 + 63) / 64 * 64;
  b->NeedScratchpad(resize->taps.back().terms > 1 ? room * omp_get_max_threads() : 0);
  const auto work = static_cast<double>(resize->row_elements * resize->terms_of_row +
                                        dst.extents.back() * dst.inner * 4);
  b->Add({"dst", "src"}, [resize, rows, room, work](char* const* at) {
    const auto* from = reinterpret_cast<const float*>(at[1]);
    auto* to = reinterpret_cast<float*>(at[0]);
    ParallelForThreads(rows, 0.2 * work, [&](int64_t thread, int64_t begin, int64_t end) {
      auto* sums = reinterpret_cast<float*>(at[2] + thread * room);
      for (int64_t row = begin; row < end; ++row) resize->Row(from, to, row, sums);
    });
  });
}

}  // namespace mxplan::host
