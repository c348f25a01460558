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

constexpr int kLeastVectors = 3;  // of a tile, beside which rows fill the registers
constexpr int kMostVectors = 8;
// Rows of products, vectors of src that they meet, and a weight.
constexpr int kMostRows = (MXPLAN_REGISTERS - kLeastVectors - 1) / kLeastVectors;
constexpr int VectorsBeside(int rows) {
  return std::min(kMostVectors, (MXPLAN_REGISTERS - 1) / (rows + 1));
}

constexpr int64_t kPanel = 8192;  // numbers of a panel, which stays in the nearest cache
constexpr int64_t kMostChannels = 64;

int64_t RoundUp(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// --- panels: [channels][columns], columns of a row of src with zeros around.  What fills their
// last vectors is any number, and so are the sums that it is added to.

struct PanelShape {
  int64_t pitch, channels;

  explicit PanelShape(const Convolution& c)
      : pitch(RoundUp(c.tile + c.read)),
        channels(std::clamp(kPanel / pitch / kLanes * kLanes, kLanes, kMostChannels)) {}
};

// Columns [first, first + count) of a row, of which those in `inside` there are.
struct Stretch {
  int64_t first, count;
  Range inside;  // counted from `first` on
};

// Of channels side by side; columns stand `pixel` apart.
template <bool kInside>
MXPLAN_INLINE void TurnSome(const float* from, int64_t pixel, int64_t column, const Range& inside,
                            int64_t channels, float* to, int64_t pitch) {
  Vec v[kLanes];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) {
    if (!kInside && (column + i < inside.begin || column + i >= inside.end)) {
      v[i] = Vec{};
    } else {
      v[i] = channels == kLanes ? Load(from + i * pixel) : LoadSome(from + i * pixel, channels);
    }
  }
  Transpose(v);
  for (int64_t i = 0; i < channels; ++i) Store(to + i * pitch, v[i]);
}

// `row`: of src, from its first channel on.
void FillPanel(const Convolution& c, const float* row, int64_t first, int64_t channels,
               const Stretch& columns, float* to, int64_t pitch) {
  const int64_t pixel = c.src.axes[kColumn];
  const Range& inside = columns.inside;
  row += columns.first * pixel;
  if (c.src.block == 1) {
    for (int64_t i = 0; i < channels; ++i, to += pitch) {
      const float* from = row + c.src.Channel(first + i);
      std::fill(to, to + inside.begin, 0.0F);
      std::copy(from + inside.begin, from + inside.end, to + inside.begin);
      std::fill(to + inside.end, to + columns.count, 0.0F);
    }
    return;
  }
  for (int64_t i = 0; i < channels; i += kLanes, to += kLanes * pitch) {
    const float* from = row + c.src.Channel(first + i);
    const int64_t some = std::min(channels - i, kLanes);
    for (int64_t x = 0; x < columns.count; x += kLanes) {
      if (x >= inside.begin && x + kLanes <= inside.end) {
        TurnSome<true>(from + x * pixel, pixel, x, inside, some, to + x, pitch);
      } else {
        TurnSome<false>(from + x * pixel, pixel, x, inside, some, to + x, pitch);
      }
    }
  }
}

// --- products

struct Panel {
  const float* numbers;
  int64_t pitch, channels;
};

// Some taps, at the weights of the panel's first channel.
struct Taps {
  const Tap *begin, *end;
  const float* weights;
  int64_t row;  // of weights
};

// Some rows of products, added to the sums at `places`, counted from `at` on.
template <int kRows, int kVectors>
__attribute__((noinline)) void Multiply(const Panel& panel, const Taps& taps, float* sums,
                                        int64_t at, const int64_t* places) {
  Vec products[kRows][kVectors] = {};
  for (const Tap* tap = taps.begin; tap != taps.end; ++tap) {
    const float *numbers = panel.numbers + tap->column, *weights = taps.weights + tap->weights;
    for (int64_t c = panel.channels; c > 0; --c, numbers += panel.pitch, weights += taps.row) {
      Vec x[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) x[v] = Load(numbers + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec weight = Broadcast(weights[r]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) products[r][v] += weight * x[v];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* to = sums + at + places[r];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v, to += kLanes) Store(to, Load(to) + products[r][v]);
  }
}

// Planes, or rows, of the window under which number `at` of src is added to some places.
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
  Range planes, rows;  // of the window
};

// Calls run(first, count) for products that stand side by side among a row's.
template <typename Run>
MXPLAN_INLINE void ForSpans(const Convolution& c, const Row& row, const Run& run) {
  const int64_t in_plane = c.axes[kRow].window * c.outputs;
  if (row.rows.count() == c.axes[kRow].window) {
    return run(row.planes.begin * in_plane, row.planes.count() * in_plane);
  }
  for (int64_t z = row.planes.begin; z < row.planes.end; ++z) {
    run(z * in_plane + row.rows.begin * c.outputs, row.rows.count() * c.outputs);
  }
}

template <int kVectors>
void AddPanel(const Convolution& c, const Row& row, const Panel& panel, Taps taps, float* sums,
              int64_t at) {
  const float* weights = taps.weights;
  ForSpans(c, row, [&](int64_t first, int64_t count) {
    for (int64_t parts = (count + c.together - 1) / c.together; parts > 0; --parts) {
      const int64_t size = (count + parts - 1) / parts;
      taps.weights = weights + first;
      WithConstant<kMostRows>(size, [&](auto rows) {
        constexpr int kRows = decltype(rows)::value;
        if constexpr (kVectors <= VectorsBeside(kRows)) {
          Multiply<kRows, kVectors>(panel, taps, sums, at, c.sums + first);
        }
      });
      first += size;
      count -= size;
    }
  });
}

// `columns` of all phases, from `first_column` on.
template <int kVectors>
void AddTile(const Convolution& c, const Row& row, int64_t first_column, int64_t columns,
             int64_t at, float* sums, float* scratch) {
  const PanelShape shape(c);
  Stretch read = {first_column - c.before, columns + c.read, {}};
  read.inside.begin = std::clamp<int64_t>(-read.first, 0, read.count);
  read.inside.end = std::clamp(c.axes[kColumn].src - read.first, read.inside.begin, read.count);
  Panel panel = {scratch, shape.pitch, 0};
  for (int64_t first = 0; first < c.inputs; first += shape.channels) {
    panel.channels = std::min(c.inputs - first, shape.channels);
    FillPanel(c, row.from, first, panel.channels, read, scratch, shape.pitch);
    const Tap* tap = c.taps;
    for (int64_t phase = 0; phase < c.phases(); ++phase) {
      const Tap* end = c.taps + c.ends[phase];
      const Taps taps = {tap, end, c.weights + first * c.products(), c.products()};
      if (tap != end) AddPanel<kVectors>(c, row, panel, taps, sums, at + phase * c.pitch);
      tap = end;
    }
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

// `columns` of a phase, from `first` on.
void AddRow(const Convolution& c, const Row& row, int64_t first, int64_t columns, float* sums,
            float* scratch) {
  for (int64_t column = 0; column < columns; column += c.tile) {
    const int64_t count = std::min(columns - column, c.tile);
    WithConstant<kMostVectors>((count + kLanes - 1) / kLanes, [&](auto vectors) {
      AddTile<decltype(vectors)::value>(c, row, first + column, count, row.at + column, sums,
                                        scratch);
    });
  }
}

void Run(const Convolution& c, const Output& output, const Part& part, float* sums,
         float* scratch) {
  const FlushSubnormals flush;
  const auto& [planes, rows, places] = part.axes;
  const int64_t first = places.begin / c.phases();
  const int64_t columns = (places.count() + c.phases() - 1) / c.phases();
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
      AddRow(c, row, first, columns, sums, scratch);
    }
  }
  for (int64_t z = 0; z < planes.count(); ++z) {
    for (int64_t y = 0; y < rows.count(); ++y) {
      const int64_t at = part.image * c.dst.image + (planes.begin + z) * c.dst.axes[kPlane] +
                         (rows.begin + y) * c.dst.axes[kRow] + places.begin * c.dst.axes[kColumn];
      FinishRow(c, output, sums + z * plane_sums + y * row_sums, places.count(), at, scratch);
    }
  }
}

// The rows of products are shared out to as few calls as can be, and vectors fill the registers
// beside them.
void SetTile(Convolution* c) {
  const int64_t calls = (c->products() + kMostRows - 1) / kMostRows;
  c->together = (c->products() + calls - 1) / calls;
  const int64_t columns = (c->axes[kColumn].dst + c->phases() - 1) / c->phases();
  const int64_t most = VectorsBeside(static_cast<int>(c->together)) * kLanes;
  const int64_t tiles = (columns + most - 1) / most;
  c->tile = RoundUp((columns + tiles - 1) / tiles);
}

// A panel, or a row of dst whose phases are put together.
int64_t Scratch(const Convolution& c, int64_t columns) {
  const PanelShape shape(c);
  return std::max(shape.channels * shape.pitch, columns + kSlack);
}

Kernel Get(const char* name) { return {name, kLanes, SetTile, Scratch, Run}; }

}  // namespace
}  // namespace mxplan::few_outputs
