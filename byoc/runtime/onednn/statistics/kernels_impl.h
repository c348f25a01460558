// The kernel of onednn/statistics/kernels.h; included once for each instruction set, by a file that
// names it.  Everything is in an unnamed namespace, so that the linker never takes one set's code
// for another's.
#include <cstring>

#include "onednn/statistics/kernels.h"

namespace mxplan::statistics {
namespace {

constexpr int64_t kChunk = 128;  // positions, which stay in the nearest cache

// Vectors by name: GCC passes over attributes of a type whose size is a template's parameter.
struct Sixteen {
  static constexpr int kLanes = 16;
  using Vec = float __attribute__((vector_size(64)));
  using Unaligned = float __attribute__((vector_size(64), aligned(4), may_alias));
};
struct Eight {
  static constexpr int kLanes = 8;
  using Vec = float __attribute__((vector_size(32)));
  using Unaligned = float __attribute__((vector_size(32), aligned(4), may_alias));
};
struct One {
  static constexpr int kLanes = 1;
  using Vec = float;
  using Unaligned = float;
};

// Four sums side by side, which a processor adds to at once: each is of a quarter of the numbers.
template <typename Lanes>
struct Sums {
  typename Lanes::Vec a = {}, b = {}, c = {}, d = {};
};

template <typename Lanes>
void Add(const float* numbers, const Rows& rows, int64_t count, Moments* found) {
  using Vec = typename Lanes::Vec;
  using Unaligned = typename Lanes::Unaligned;
  constexpr int kLanes = Lanes::kLanes;
  auto at = [&](int64_t i) -> const Unaligned& {
    return *reinterpret_cast<const Unaligned*>(numbers + i * rows.step);
  };
  const int64_t whole = count / 4 * 4;
  Sums<Lanes> sum, distances, squares;
  for (int64_t i = 0; i < whole; i += 4) {
    sum.a += at(i);
    sum.b += at(i + 1);
    sum.c += at(i + 2);
    sum.d += at(i + 3);
  }
  for (int64_t i = whole; i < count; ++i) sum.a += at(i);
  const Vec centre = ((sum.a + sum.b) + (sum.c + sum.d)) / static_cast<float>(count);
  for (int64_t i = 0; i < whole; i += 4) {
    const Vec a = at(i) - centre, b = at(i + 1) - centre;
    const Vec c = at(i + 2) - centre, d = at(i + 3) - centre;
    distances.a += a;
    distances.b += b;
    distances.c += c;
    distances.d += d;
    squares.a += a * a;
    squares.b += b * b;
    squares.c += c * c;
    squares.d += d * d;
  }
  for (int64_t i = whole; i < count; ++i) {
    const Vec a = at(i) - centre;
    distances.a += a;
    squares.a += a * a;
  }
  const Vec distance = (distances.a + distances.b) + (distances.c + distances.d);
  const Vec square = (squares.a + squares.b) + (squares.c + squares.d);
  float centres[kLanes], rests[kLanes], squared[kLanes];
  std::memcpy(centres, &centre, sizeof(centres));
  std::memcpy(rests, &distance, sizeof(rests));
  std::memcpy(squared, &square, sizeof(squared));
  const auto more = static_cast<double>(count), before = static_cast<double>(found->count);
  for (int lane = 0; lane < kLanes; ++lane) {
    const double left = rests[lane];
    const double away = centres[lane] + left / more - found->mean[lane];
    found->mean[lane] += away * more / (before + more);
    found->squares[lane] +=
        squared[lane] - left * left / more + away * away * before * more / (before + more);
  }
  found->count += count;
}

template <typename Lanes>
void AddRows(const Rows& rows, const float* src, Moments* found) {
  for (int64_t row = 0; row < rows.outer; ++row, src += rows.outer_stride) {
    for (int64_t begin = 0; begin < rows.inner; begin += kChunk) {
      const int64_t left = rows.inner - begin;
      Add<Lanes>(src + begin * rows.step, rows, left < kChunk ? left : kChunk, found);
    }
  }
}

inline void FindMoments(const Rows& rows, const float* src, int lanes, Moments* found) {
  if (lanes == 16) return AddRows<Sixteen>(rows, src, found);
  if (lanes == 8) return AddRows<Eight>(rows, src, found);
  AddRows<One>(rows, src, found);
}

}  // namespace
}  // namespace mxplan::statistics
