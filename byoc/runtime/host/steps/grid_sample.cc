// Images and volumes read at the points of a grid.
//
// The neighbours of some points and their weights are found once, and every channel is summed by
// them.
#include <algorithm>
#include <array>
#include <memory>

#include "base/error.h"
#include "host/steps/builders.h"
#include "host/steps/images.h"
#include "host/steps/named.h"

namespace mxplan::host {
namespace {

constexpr double kTermNs = 0.5, kPointNs = 10.0;

constexpr Named<Sampling> kSamplings[] = {
    {"nearest", Sampling::kNearest}, {"linear", Sampling::kLinear}, {"cubic", Sampling::kCubic}};
constexpr Named<Beyond> kBeyond[] = {
    {"zeros", Beyond::kZeros}, {"border", Beyond::kBorder}, {"reflection", Beyond::kReflection}};

// Memory of a thread for what it knows of some points.
struct Room {
  int32_t* index;
  float *weights, *turned;
  int32_t *groups, *samples;
  std::array<float*, kMostAxes> places;

  static int64_t Bytes(int64_t terms) { return kMostSampled * (terms * 12 + 5 + kMostAxes * 4); }
  Room(char* at, int64_t terms)
      : index(reinterpret_cast<int32_t*>(at)),
        weights(reinterpret_cast<float*>(at + kMostSampled * terms * 4)),
        turned(reinterpret_cast<float*>(at + kMostSampled * terms * 8)),
        groups(reinterpret_cast<int32_t*>(at + kMostSampled * terms * 12)),
        samples(reinterpret_cast<int32_t*>(at + kMostSampled * (terms * 12 + 1))) {
    for (size_t axis = 0; axis < places.size(); ++axis) {
      const auto first = static_cast<int64_t>(axis) * 4;
      places[axis] = reinterpret_cast<float*>(at + kMostSampled * (terms * 12 + 5 + first));
    }
  }
};

// Strides of coordinates.
struct Grid {
  int64_t sample = 0, step = 1;  // elements from one sample, and one point, to the next
  std::array<int64_t, kMostAxes> coordinate;  // where those of an axis begin
};

struct GridSample {
  Sampling sampling = Sampling::kLinear;
  Beyond beyond = Beyond::kZeros;
  bool corners = false;
  Images src, dst;
  Grid grid;
  int64_t terms = 1, points = 1;  // of a sample
  // Runs of points that stand one behind the other in dst: those of a sample, or all of them.
  int64_t runs = 1, run = 1, parts = 1;

  // Some points of a run: their places, their neighbours, and the sums of these in every plane.
  void Part(const float* from, const float* coordinates, float* to, int64_t number,
            const Room& room) const {
    const int64_t begin = number % parts * kMostSampled;
    const int64_t count = std::min(kMostSampled, run - begin);
    const int64_t first = number / parts * run + begin;
    const auto rank = static_cast<int64_t>(src.extents.size());
    std::array<SampledAxis, kMostAxes> axes;
    for (int64_t axis = 0; axis < rank; ++axis) {
      axes[axis] = {room.places[axis], src.extents[axis], corners};
    }
    const int64_t base = first / points;
    for (int64_t at = 0; at < count;) {
      const int64_t sample = (first + at) / points, point = (first + at) % points;
      const int64_t some = std::min(points - point, count - at);
      const float* given = coordinates + sample * grid.sample + point * grid.step;
      for (int64_t axis = 0; axis < rank; ++axis) {
        const float* own = given + grid.coordinate[axis];
        float* places = room.places[axis] + at;
        if (grid.step == 1) {
          std::copy_n(own, some, places);
        } else {
          for (int64_t i = 0; i < some; ++i) places[i] = own[i * grid.step];
        }
      }
      std::fill_n(room.samples + at, some, static_cast<int32_t>(sample - base));
      at += some;
    }
    Points found{room.index, room.weights, terms, count, false};
    found.some = KernelsHere().sample_points(sampling, beyond, axes.data(), rank, room.samples,
                                             count, room.index, room.weights);
    if (src.inner == 1 && terms > 1) {
      found.across = sampling == Sampling::kLinear ? 2 : 4;
      found.together = KernelsHere().find_together(found, found.across, room.turned, room.groups);
      found.turned = room.turned;
      found.groups = room.groups;
    }
    from += base * src.sample_stride;
    to += base * dst.sample_stride + (first - base * points) * dst.inner;
    for (int64_t plane = 0; plane < src.planes; ++plane) {
      KernelsHere().sum_points(from, found, src.inner, to);
      from += src.plane_stride;
      to += dst.plane_stride;
    }
  }
};

// Whether all points of a sample stand one behind the other, `*step` elements apart.
bool AreInARow(const ResolvedValue& grid, int64_t* step) {
  const Dims &dims = grid.dims, &strides = grid.layout.strides;
  *step = strides.back();
  for (size_t i = dims.size() - 1; i-- > 2;) {
    if (dims[i] != 1 && strides[i] != strides[i + 1] * dims[i + 1]) return false;
  }
  return true;
}

}  // namespace

void BuildGridSample(StepBuilder* b) {
  if (b->Dtype("src") != "float32") ThrowUnsupported("src: element type ", b->Dtype("src"));
  const ResolvedValue& grid = b->Get("grid");
  auto made = std::make_shared<GridSample>();
  GridSample& s = *made;
  s.sampling = ValueOf(kSamplings, b->step(), "algorithm");
  s.beyond = ValueOf(kBeyond, b->step(), "padding_mode");
  s.src = ImagesOf(b->Get("src"));
  s.dst = ImagesOf(b->Get("dst"));
  if (s.src.inner != s.dst.inner || s.src.planes != s.dst.planes) {
    ThrowUnsupported("src in layout ", b->Get("src").tag, " and dst in ", b->Get("dst").tag);
  }
  if (IsBlocked(grid.layout) || !AreInARow(grid, &s.grid.step)) {
    ThrowUnsupported("grid: layout ", grid.tag, ", whose points are not in a row");
  }
  const size_t rank = s.src.extents.size();
  int64_t elements = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    // The last axis has the first coordinate.
    s.grid.coordinate[axis] = static_cast<int64_t>(rank - 1 - axis) * grid.layout.strides[1];
    s.points *= s.dst.extents[axis];
    elements *= s.src.extents[axis];
    s.terms *= s.sampling == Sampling::kNearest ? 1 : s.sampling == Sampling::kLinear ? 2 : 4;
  }
  if (elements > INT32_MAX) ThrowUnsupported("images of ", elements, " pixels");
  s.corners = FlagOf(b->step(), "align_corners");
  s.grid.sample = grid.layout.strides[0];
  const bool together = s.src.planes == 1 && elements * s.src.samples <= INT32_MAX;
  s.runs = together ? 1 : s.src.samples;
  s.run = together ? s.points * s.src.samples : s.points;
  s.parts = (s.run + kMostSampled - 1) / kMostSampled;
  const int64_t room = Room::Bytes(s.terms);
  b->NeedScratchpad(room * omp_get_max_threads());
  const auto channels = static_cast<double>(s.src.planes * s.src.inner);
  const double part_ns = static_cast<double>(std::min(s.run, kMostSampled)) *
                         (kPointNs + kTermNs * static_cast<double>(s.terms) * channels);
  b->Add({"dst", "src", "grid"}, [made, room, part_ns](char* const* at) {
    const GridSample& one = *made;
    ParallelForThreads(
        one.runs * one.parts, part_ns, [&](int64_t thread, int64_t begin, int64_t end) {
          const Room own(at[3] + thread * room, one.terms);
          for (int64_t part = begin; part < end; ++part) {
            one.Part(reinterpret_cast<const float*>(at[1]), reinterpret_cast<const float*>(at[2]),
                     reinterpret_cast<float*>(at[0]), part, own);
          }
        });
  });
}

}  // namespace mxplan::host
