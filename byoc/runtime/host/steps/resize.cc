// Images and volumes of other extents: nearest, linear and cubic, by all rules for coordinates.
//
// A point of dst lies at a fraction of src's indices, which is kept as one: rounding is decided
// exactly.  Along the last axis a point is a sum of few neighbours; along the others whole rows are
// summed first.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/error.h"
#include "host/steps/builders.h"
#include "host/steps/images.h"
#include "host/steps/named.h"

namespace mxplan::host {
namespace {

constexpr int64_t kMostPoints = 1 << 24;  // along one axis, whose neighbours are kept

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// The place of a point of dst in src: `above / below`, with a divisor above 0.
struct Fraction {
  int64_t above = 0, below = 1;
};

using Coordinates = Fraction (*)(int64_t at, int64_t in, int64_t out);

constexpr Named<Coordinates> kCoordinates[] = {
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
  std::vector<float> turned;  // of neighbours side by side, if somebody asked
  std::vector<int32_t> groups;
  int64_t together = 0;

  Points AsPoints() const {
    Points found{index.data(), weights.data(), terms, points, false};
    if (groups.empty()) return found;
    found.across = terms;
    found.turned = turned.data();
    found.groups = groups.data();
    found.together = together;
    return found;
  }

  // For an axis whose points are read one by one.
  void FindTogether() {
    if (terms == 1) return;
    const Points alone = AsPoints();
    turned.resize(weights.size());
    groups.resize(static_cast<size_t>((points + 3) / 4));
    together = KernelsHere().find_together(alone, terms, turned.data(), groups.data());
  }
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

constexpr Named<int64_t> kTerms[] = {{"nearest", 1}, {"linear", 2}, {"cubic", 4}};

Taps TapsOf(const Step& step, int64_t in, int64_t out) {
  const Coordinates coordinates = ValueOf(kCoordinates, step, "coordinates");
  if (std::max(in, out) > kMostPoints) {
    ThrowUnsupported("an axis of ", std::max(in, out), " points, expected at most ", kMostPoints);
  }
  Taps taps;
  taps.terms = ValueOf(kTerms, step, "algorithm");
  taps.points = out;
  taps.index.resize(static_cast<size_t>(taps.terms * out));
  taps.weights.resize(taps.index.size());
  for (int64_t at = 0; at < out; ++at) {
    const Fraction f = coordinates(at, in, out);
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

constexpr int64_t kMostRows = 16;         // that a row of dst is made of
constexpr int64_t kShortestKeptRow = 64;  // of shorter ones none is kept

// A row of dst, and the rows of src that it is made of.
struct Sources {
  float* to = nullptr;
  int64_t terms = 1;
  std::array<const float*, kMostRows> rows;
  std::array<float, kMostRows> weights;
};

// Rows of src that have been made as long as those of dst, for some rows of dst that follow each
// other: neighbours are made of the same ones.
class LongRows {
 public:
  LongRows(float* room, int64_t elements) : room_(room), elements_(elements) {}

  // The long rows of a row of dst; `lengthen(from, to)` makes those that are not there.
  template <typename Lengthen>
  const float* const* Of(const Sources& row, const Lengthen& lengthen) {
    for (int64_t k = 0; k < row.terms; ++k) {
      int64_t slot = Find(row.rows[k], row.terms);
      if (slot < 0) {
        slot = Unused(row);
        held_[slot] = row.rows[k];
        lengthen(row.rows[k], room_ + slot * elements_);
      }
      found_[k] = room_ + slot * elements_;
    }
    return found_.data();
  }

 private:
  int64_t Find(const float* row, int64_t slots) const {
    for (int64_t slot = 0; slot < slots; ++slot) {
      if (held_[slot] == row) return slot;
    }
    return -1;
  }

  // There are as many slots as rows, so one holds none of them.
  int64_t Unused(const Sources& row) const {
    const auto* end = row.rows.begin() + row.terms;
    for (int64_t slot = 0; slot + 1 < row.terms; ++slot) {
      if (std::find(row.rows.begin(), end, held_[slot]) == end) return slot;
    }
    return row.terms - 1;
  }

  float* room_;
  int64_t elements_;
  std::array<const float*, kMostRows> held_{}, found_;
};

struct Resize {
  Images src, dst;
  std::vector<Taps> taps;  // of each spatial axis
  int64_t rows_of_plane = 1, terms_of_row = 1;
  int64_t src_row = 0, dst_row = 0;  // elements
  bool long_first = false;           // rows are made long before they are summed

  // Of row `row` of all rows of dst.
  Sources SourcesOf(const float* from, float* to, int64_t row) const {
    int64_t rest = row % rows_of_plane;
    const int64_t plane = row / rows_of_plane;
    Sources found;
    found.to = to + plane / dst.planes * dst.sample_stride + plane % dst.planes * dst.plane_stride;
    found.rows[0] =
        from + plane / src.planes * src.sample_stride + plane % src.planes * src.plane_stride;
    found.weights[0] = 1.0F;
    for (size_t axis = taps.size() - 1; axis-- > 0;) {
      const int64_t at = rest % dst.extents[axis], own = taps[axis].terms;
      rest /= dst.extents[axis];
      found.to += at * dst.strides[axis];
      for (int64_t i = found.terms; i-- > 0;) {
        const float* row_before = found.rows[i];
        const float weight_before = found.weights[i];
        for (int64_t k = own; k-- > 0;) {
          const auto tap = static_cast<size_t>(k * taps[axis].points + at);
          found.rows[k * found.terms + i] = row_before + taps[axis].index[tap] * src.strides[axis];
          found.weights[k * found.terms + i] = weight_before * taps[axis].weights[tap];
        }
      }
      found.terms *= own;
    }
    return found;
  }

  int64_t RoomElements() const {
    if (taps.back().terms == 1) return 0;
    const int64_t row = std::max(src_row, kMostLanes);
    return long_first ? terms_of_row * dst_row + kMostLanes : row;
  }

  void Rows(const float* from, float* to, int64_t begin, int64_t end, float* room) const {
    const Points along = taps.back().AsPoints();
    const int64_t extent = src.extents.back();
    if (along.terms == 1) return Nearest(from, to, begin, end);
    if (long_first) return LongFirst(from, to, begin, end, room);
    for (int64_t row = begin; row < end; ++row) {
      const Sources one = SourcesOf(from, to, row);
      KernelsHere().weighted_sum(one.rows.data(), one.weights.data(), one.terms, room, src_row);
      KernelsHere().interpolate(room, extent, along, src.inner, one.to);
    }
  }

 private:
  void Nearest(const float* from, float* to, int64_t begin, int64_t end) const {
    const Points along = taps.back().AsPoints();
    const float *read = nullptr, *written = nullptr;
    for (int64_t row = begin; row < end; ++row) {
      const Sources one = SourcesOf(from, to, row);
      if (one.rows[0] == read) {
        std::copy_n(written, dst_row, one.to);
      } else {
        KernelsHere().interpolate(one.rows[0], src.extents.back(), along, src.inner, one.to);
      }
      read = one.rows[0];
      written = one.to;
    }
  }

  void LongFirst(const float* from, float* to, int64_t begin, int64_t end, float* room) const {
    const Points along = taps.back().AsPoints();
    float* short_row = room + terms_of_row * dst_row;
    LongRows rows(room, dst_row);
    for (int64_t row = begin; row < end; ++row) {
      const Sources one = SourcesOf(from, to, row);
      const float* const* made = rows.Of(one, [&](const float* given, float* made_long) {
        if (src_row < kMostLanes) {  // a kernel may read so many
          std::copy_n(given, src_row, short_row);
          given = short_row;
        }
        KernelsHere().interpolate(given, src.extents.back(), along, src.inner, made_long);
      });
      KernelsHere().weighted_sum(made, one.weights.data(), one.terms, one.to, dst_row);
    }
  }
};

// Of a plane.
int64_t RowsOf(const Images& images) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < images.extents.size(); ++axis) rows *= images.extents[axis];
  return rows;
}

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
  resize->taps.back().FindTogether();
  resize->src_row = src.extents.back() * src.inner;
  resize->dst_row = dst.extents.back() * dst.inner;
  const int64_t rows = dst.samples * dst.planes * resize->rows_of_plane;
  resize->long_first = resize->dst_row >= kShortestKeptRow && resize->rows_of_plane >= RowsOf(src);
  const int64_t room = (resize->RoomElements() * 4 + 63) / 64 * 64;
  b->NeedScratchpad(room * omp_get_max_threads());
  const auto work =
      static_cast<double>(resize->src_row * resize->terms_of_row + resize->dst_row * 4);
  b->Add({"dst", "src"}, [resize, rows, room, work](char* const* at) {
    const auto* from = reinterpret_cast<const float*>(at[1]);
    auto* to = reinterpret_cast<float*>(at[0]);
    ParallelForThreads(rows, 0.2 * work, [&](int64_t thread, int64_t begin, int64_t end) {
      resize->Rows(from, to, begin, end, reinterpret_cast<float*>(at[2] + thread * room));
    });
  });
}

}  // namespace mxplan::host
