// The kernel of onednn/few_outputs/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it and its MXPLAN_REGISTERS.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "onednn/few_outputs/kernels.h"
#include "onednn/post_ops/apply_impl.h"
#include "onednn/vectors/counts_impl.h"
#include "onednn/vectors/flush_subnormals.h"

namespace mxplan::few_outputs {
namespace {

constexpr int kMostVectors = 3;
constexpr int kMostRows = (MXPLAN_REGISTERS - kMostVectors - 1) / kMostVectors;  // of products
constexpr int64_t kTile = kMostVectors * kLanes;
constexpr int64_t kChannels = 64;  // of a panel, which stays in the nearest cache

// --- panels: [channels][kTile], columns of a row of src with zeros behind them

// Of channels side by side; pixels stand `pixel` apart.
MXPLAN_INLINE void TurnSome(const float* from, int64_t pixel, int64_t pixels, int64_t channels,
                            float* to) {
  Vec v[kLanes];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) {
    v[i] = i >= pixels          ? Vec{}
           : channels == kLanes ? Load(from + i * pixel)
                                : LoadSome(from + i * pixel, channels);
  }
  Transpose(v);
  for (int64_t i = 0; i < channels; ++i) Store(to + i * kTile, v[i]);
}

// `row`: of src, from its first channel on.
void FillPanel(const Convolution& c, const float* row, int64_t first, int64_t channels,
               int64_t column, int64_t columns, float* to) {
  const int64_t pixel = c.src.axes[kColumn];
  row += column * pixel;
  if (c.src.block == 1) {
    for (int64_t i = 0; i < channels; ++i, to += kTile) {
      const float* from = row + c.src.Channel(first + i);
      int64_t x = 0;
      for (; x + kLanes <= columns; x += kLanes) Store(to + x, Load(from + x));
      if (x < columns) Store(to + x, LoadSome(from + x, columns - x));
    }
    return;
  }
  for (int64_t i = 0; i < channels; i += kLanes, to += kLanes * kTile) {
    const float* from = row + c.src.Channel(first + i);
    for (int64_t x = 0; x < columns; x += kLanes) {
      TurnSome(from + x * pixel, pixel, columns - x, std::min(channels - i, kLanes), to + x);
    }
  }
}

// --- products

struct Panel {
  const float* numbers;
  int64_t channels;
  int64_t columns;  // of the last vector
};

// Some rows of the products of a panel, added to the sums at `places`, counted from `at` on: of
// columns that there are, since a weight that is no number makes one of the zeros behind them.
template <int kRows, int kVectors>
__attribute__((noinline)) void Multiply(const Panel& panel, const float* weights,
                                        int64_t weights_row, float* sums, int64_t at,
                                        const int64_t* places) {
  Vec products[kRows][kVectors] = {};
  const float* numbers = panel.numbers;
  for (int64_t c = panel.channels; c > 0; --c, numbers += kTile, weights += weights_row) {
    Vec x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = Load(numbers + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec weight = Broadcast(weights[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) products[r][v] += weight * x[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* to = sums + at + places[r];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v, to += kLanes) {
      const Vec sum = Load(to) + products[r][v];
      if (v < kVectors - 1 || panel.columns == kLanes) {
        Store(to, sum);
      } else {
        StoreSome(to, sum, panel.columns);
      }
    }
  }
}

// The taps under which number `at` of src is added to some places.
Range TapsOf(const Axis& axis, int64_t at, const Range& places) {
  auto is_inside = [&](int64_t tap) {
    const int64_t place = axis.Place(at, tap);
    return place >= places.begin && place < places.end;
  };
  Range taps;
  while (taps.begin < axis.window && !is_inside(taps.begin)) ++taps.begin;
  taps.end = taps.begin;
  while (taps.end < axis.window && is_inside(taps.end)) ++taps.end;
  return taps;
}

// A row of src, whose products are added to the sums from `at` on, which may be in front of them.
struct Row {
  const float* from;
  int64_t at;
  Range planes, rows;  // taps
};

// Calls run(first, count) for what stands side by side among the weights of the row's taps.
template <typename Run>
MXPLAN_INLINE void ForSpans(const Convolution& c, const Row& row, const Run& run) {
  const int64_t in_plane = c.axes[kRow].window * c.outputs;
  const int64_t in_column = c.axes[kPlane].window * in_plane, columns = c.axes[kColumn].window;
  const bool all_rows = row.rows.count() == c.axes[kRow].window;
  if (all_rows && row.planes.count() == c.axes[kPlane].window) return run(0, columns * in_column);
  for (int64_t x = 0; x < columns; ++x) {
    const int64_t first = x * in_column + row.rows.begin * c.outputs;
    if (all_rows) {
      run(first + row.planes.begin * in_plane, row.planes.count() * in_plane);
      continue;
    }
    for (int64_t z = row.planes.begin; z < row.planes.end; ++z) {
      run(first + z * in_plane, row.rows.count() * c.outputs);
    }
  }
}

template <int kVectors>
void AddTile(const Convolution& c, const Row& row, int64_t column, int64_t columns, int64_t at,
             float* sums, float* numbers) {
  const int64_t all = c.taps() * c.outputs;
  Panel panel = {numbers, 0, columns - (kVectors - 1) * kLanes};
  for (int64_t first = 0; first < c.inputs; first += kChannels) {
    panel.channels = std::min(c.inputs - first, kChannels);
    FillPanel(c, row.from, first, panel.channels, column, columns, numbers);
    const float* weights = c.weights + first * all;
    ForSpans(c, row, [&](int64_t term, int64_t terms) {
      InParts<kMostRows>(terms, [&](auto rows, int64_t part) {
        Multiply<decltype(rows)::value, kVectors>(panel, weights + term + part, all, sums, at,
                                                  c.sums + term + part);
      });
    });
  }
}

// --- results

// Neighbours in a row of dst, or of what stands as it does.
MXPLAN_INLINE Vec Read(const float* from, int64_t apart, int64_t count) {
  if (apart == 1) return count == kLanes ? Load(from) : LoadSome(from, count);
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i * apart];
  return Load(lanes);
}

MXPLAN_INLINE void Write(float* to, int64_t apart, int64_t count, Vec x) {
  if (apart == 1) return count == kLanes ? Store(to, x) : StoreSome(to, x, count);
  float lanes[kLanes];
  Store(lanes, x);
  for (int64_t i = 0; i < count; ++i) to[i * apart] = lanes[i];
}

// The row of one channel whose sums are `line`, which may be read beyond its end; `at` is its place
// in dst.
void Finish(const Convolution& c, const Output& output, int64_t channel, const float* line,
            int64_t columns, int64_t at) {
  const int64_t apart = c.dst.axes[kColumn];
  const Vec bias = output.bias ? Broadcast(output.bias[channel]) : Vec{};
  for (int64_t x = 0; x < columns; x += kLanes) {
    const int64_t count = std::min(columns - x, kLanes), place = at + x * apart;
    Vec sum = Load(line + x) + bias;
    for (int i = 0; i < output.post_op_count; ++i) {
      const PostOp& op = output.post_ops[i];
      Vec other{};
      if (op.code == PostOp::Code::kSum) {
        other = Read(c.to + place, apart, count);
      } else if (op.data) {
        other = op.per_channel ? Broadcast(op.data[channel]) : Read(op.data + place, apart, count);
      }
      sum = Apply(op, sum, other);
    }
    Write(c.to + place, apart, count, sum);
  }
}

// Lanes of two vectors in turns, from the first or the second half of both on.
template <int64_t kFirst, int64_t... kLane>
MXPLAN_INLINE Vec InTurns(Vec a, Vec b, std::integer_sequence<int64_t, kLane...>) {
  return __builtin_shufflevector(a, b, (kFirst + kLane / 2 + kLane % 2 * kLanes)...);
}

// Columns of all phases, in their order, of which `count` are written, and up to kSlack behind
// them.
constexpr int64_t kSlack = 2 * kLanes;
void Interleave(const float* sums, int64_t pitch, int64_t phases, int64_t count, float* to) {
  if (phases == 2) {
    constexpr auto kAll = std::make_integer_sequence<int64_t, kLanes>();
    for (int64_t i = 0; 2 * i < count; i += kLanes, to += 2 * kLanes) {
      const Vec even = Load(sums + i), odd = Load(sums + pitch + i);
      Store(to, InTurns<0>(even, odd, kAll));
      Store(to + kLanes, InTurns<kLanes / 2>(even, odd, kAll));
    }
    return;
  }
  for (int64_t phase = 0; phase < phases; ++phase, sums += pitch) {
    for (int64_t x = phase, i = 0; x < count; x += phases, ++i) to[x] = sums[i];
  }
}

void FinishRow(const Convolution& c, const Output& output, const float* sums, int64_t columns,
               int64_t at, float* line) {
  for (int64_t channel = 0; channel < c.outputs; ++channel) {
    const float* from = sums + channel * c.phases() * c.pitch;
    if (c.phases() > 1) {
      Interleave(from, c.pitch, c.phases(), columns, line);
      from = line;
    }
    Finish(c, output, channel, from, columns, at + c.dst.Channel(channel));
  }
  if (c.stored == c.outputs) return;
  float* to = c.to + at + c.outputs;  // behind the channels, in a block
  for (int64_t x = 0; x < columns; ++x, to += c.dst.axes[kColumn]) {
    std::fill_n(to, c.stored - c.outputs, 0.0F);
  }
}

// --- parts

void AddRow(const Convolution& c, const Row& row, const Columns& columns, float* sums,
            float* numbers) {
  for (int64_t column = columns.src.begin; column < columns.src.end; column += kTile) {
    const int64_t count = std::min(columns.src.end - column, kTile);
    const int64_t at = row.at + column - columns.sums.begin;
    WithConstant<kMostVectors>((count + kLanes - 1) / kLanes, [&](auto vectors) {
      AddTile<decltype(vectors)::value>(c, row, column, count, at, sums, numbers);
    });
  }
}

void Run(const Convolution& c, const Output& output, const Part& part, float* sums,
         float* scratch) {
  const FlushSubnormals flush;
  const auto& [planes, rows, places] = part.axes;
  const Columns columns = ColumnsOf(c.axes[kColumn], places, kTile);
  const int64_t row_sums = c.row(), plane_sums = c.part_rows * row_sums;
  for (int64_t z = 0; z < planes.count(); ++z) {
    std::fill_n(sums + z * plane_sums, rows.count() * row_sums, 0.0F);
  }
  const Range src_planes = SourceOf(c.axes[kPlane], planes),
              src_rows = SourceOf(c.axes[kRow], rows);
  const float* image = c.from + part.image * c.src.image;
  for (int64_t z = src_planes.begin; z < src_planes.end; ++z) {
    const int64_t plane = (c.axes[kPlane].Place(z, 0) - planes.begin) * plane_sums;
    const Range taps = TapsOf(c.axes[kPlane], z, planes);
    for (int64_t y = src_rows.begin; y < src_rows.end; ++y) {
      const Row row = {image + z * c.src.axes[kPlane] + y * c.src.axes[kRow],
                       plane + (c.axes[kRow].Place(y, 0) - rows.begin) * row_sums, taps,
                       TapsOf(c.axes[kRow], y, rows)};
      AddRow(c, row, columns, sums, scratch);
    }
  }
  const int64_t skipped = places.begin / c.phases() - columns.sums.begin;
  for (int64_t z = 0; z < planes.count(); ++z) {
    for (int64_t y = 0; y < rows.count(); ++y) {
      const int64_t at = part.image * c.dst.image + (planes.begin + z) * c.dst.axes[kPlane] +
                         (rows.begin + y) * c.dst.axes[kRow] + places.begin * c.dst.axes[kColumn];
      FinishRow(c, output, sums + z * plane_sums + y * row_sums + skipped, places.count(), at,
                scratch);
    }
  }
}

// A panel, or a row of dst whose phases are put together.
int64_t Scratch(int64_t columns) { return std::max(kChannels * kTile, columns + kSlack); }

Kernel Get(const char* name) { return {name, kLanes, kTile, Scratch, Run}; }

}  // namespace
}  // namespace mxplan::few_outputs
