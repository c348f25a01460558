// The kernels of onednn/grouped/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it and its MXPLAN_REGISTERS.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "onednn/grouped/kernels.h"
#include "onednn/post_ops/apply_impl.h"

namespace mxplan::grouped {
namespace {

constexpr int64_t kMostVectors = 4;  // of a group's channels at once
constexpr int64_t kLine = 16;        // floats of a line of the cache

int64_t Reach(const Axis& axis) { return (axis.filter - 1) * axis.dilation + 1; }

// Rows of src that a strip of dst needs at one time.
int64_t RingRows(const Geometry& g) { return Reach(g.y); }
// Columns of src that a strip needs, and as many of them as one in `stride` is.
int64_t SourceColumns(const Geometry& g, int64_t columns) {
  return (columns - 1) * g.x.stride + Reach(g.x);
}
// Up to whole vectors, since they are written so.
int64_t PhaseColumns(const Geometry& g, int64_t columns) {
  int64_t count = (SourceColumns(g, columns) + g.x.stride - 1) / g.x.stride;
  return (count + kLanes - 1) / kLanes * kLanes;
}

// A row of src as it is kept, so that neighbours of dst find their numbers side by side:
// [columns modulo the stride][channels of a group][columns][lanes if spread].
struct Row {
  int64_t columns, channel, phase, floats;
  Row(const Geometry& g, int64_t of_dst)
      : columns(PhaseColumns(g, of_dst)),
        channel(columns * (g.spread ? kLanes : 1)),
        phase(channel * g.inputs),
        floats(phase * g.x.stride) {}
};

int64_t ScratchFloats(const Geometry& g, int64_t columns) {
  return RingRows(g) * Row(g, columns).floats;
}

// Lane l of channel c of a pixel is its channel l / outputs * inputs + c.
struct Spreading {
  using Places = int32_t __attribute__((vector_size(4 * MXPLAN_LANES)));
  Places places[kLanes];
  explicit Spreading(const Geometry& g) {
    if (!g.spread) return;
    for (int64_t c = 0; c < g.inputs; ++c) {
      for (int64_t l = 0; l < kLanes; ++l) {
        places[c][l] = static_cast<int32_t>(l / g.outputs * g.inputs + c);
      }
    }
  }
};

// Pixels are far apart, where only software sees ahead.
template <bool kToWrite>
MXPLAN_INLINE void AskFor(const float* pixel, int64_t channels) {
  for (int64_t c = 0; c < channels; c += kLine) __builtin_prefetch(pixel + c, kToWrite ? 1 : 0);
}

// Columns of one phase of a row, from column `left` of src on.
template <typename Take>
void FillPhase(const Geometry& g, const float* src, int64_t left, const Row& row, float* to,
               const Take& take) {
  const float* rows[kLanes];
  static const float kNothing[kLanes > 16 ? kLanes : 16] = {};
  for (int64_t x = 0; x < row.columns; x += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      int64_t column = left + (x + i) * g.x.stride;
      rows[i] = column < 0 || column >= g.src.width ? nullptr : src + column * g.src.column;
      if (rows[i]) AskFor<false>(rows[i] + g.src.row, g.inputs);  // the next row comes soon
    }
    take(rows, kNothing, to + x * (g.spread ? kLanes : 1));
  }
}

// A row of src, from column `left` on, with zeros where the image ends.
void FillRow(const Geometry& g, const Spreading& spreading, const float* src, int64_t y,
             int64_t left, const Row& row, float* to) {
  if (y < 0 || y >= g.src.height) {
    std::fill(to, to + row.floats, 0.0F);
    return;
  }
  src += y * g.src.row;
  for (int64_t phase = 0; phase < g.x.stride; ++phase, to += row.phase) {
    FillPhase(g, src, left + phase, row, to,
              [&](const float* const* pixels, const float* nothing, float* at) {
                if (g.spread) {
                  const int64_t channels = kLanes / g.outputs * g.inputs;
                  for (int64_t i = 0; i < kLanes; ++i) {
                    Vec pixel{};
                    if (pixels[i]) {
                      pixel = channels < kLanes ? LoadSome(pixels[i], channels) : Load(pixels[i]);
                    }
                    for (int64_t c = 0; c < g.inputs; ++c) {
                      Store(at + c * row.channel + i * kLanes,
                            __builtin_shuffle(pixel, spreading.places[c]));
                    }
                  }
                  return;
                }
                int64_t c = 0;
                for (; c + kLanes <= g.inputs; c += kLanes) {
                  Vec v[kLanes];
#pragma GCC unroll 16
                  for (int64_t i = 0; i < kLanes; ++i) {
                    v[i] = Load(pixels[i] ? pixels[i] + c : nothing);
                  }
                  Transpose(v);
#pragma GCC unroll 16
                  for (int64_t i = 0; i < kLanes; ++i) Store(at + (c + i) * row.channel, v[i]);
                }
                for (; c < g.inputs; ++c) {
                  for (int64_t i = 0; i < kLanes; ++i) {
                    at[c * row.channel + i] = pixels[i] ? pixels[i][c] : 0.0F;
                  }
                }
              });
  }
}

// The operands of one tile: rows of src by those of filters, from its first column on.
struct Tile {
  const float* const* rows;
  const int64_t* taps;  // places of the filter's columns in a row
  int64_t channel;      // from one channel of a row to the next one
  const float* weights;
  int64_t vector_weights;  // from one vector's weights to the next one's
};

template <int kP, int kV, bool kSpread>
MXPLAN_INLINE void AddChannel(const float* src, const float* weights, int64_t vector_weights,
                              Vec (&sums)[kP][kV]) {
  auto pixel = [&](int p) {
    if constexpr (kSpread) {
      return Load(src + p * kLanes);
    } else {
      return Broadcast(src[p]);
    }
  };
  if constexpr (kV <= kP) {
    Vec w[kV];
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) w[v] = Load(weights + v * vector_weights);
#pragma GCC unroll 28
    for (int p = 0; p < kP; ++p) {
      const Vec s = pixel(p);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) sums[p][v] += w[v] * s;
    }
  } else {
    Vec s[kP];
#pragma GCC unroll 4
    for (int p = 0; p < kP; ++p) s[p] = pixel(p);
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      const Vec w = Load(weights + v * vector_weights);
#pragma GCC unroll 4
      for (int p = 0; p < kP; ++p) sums[p][v] += w * s[p];
    }
  }
}

// The sums of kP pixels and kV vectors of channels, pixel after pixel.
template <int kP, int kV, bool kSpread>
void RunTile(const Geometry& g, const Tile& tile, float* to) {
  Vec sums[kP][kV] = {};
  const float* weights = tile.weights;
  for (int64_t y = 0; y < g.y.filter; ++y) {
    for (int64_t x = 0; x < g.x.filter; ++x) {
      const float* src = tile.rows[y] + tile.taps[x];
      for (int64_t c = 0; c < g.inputs; ++c, src += tile.channel, weights += kLanes) {
        AddChannel<kP, kV, kSpread>(src, weights, tile.vector_weights, sums);
      }
    }
  }
#pragma GCC unroll 28
  for (int p = 0; p < kP; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) Store(to + (p * kV + v) * kLanes, sums[p][v]);
  }
}

// The place that sums go to, and the post-ops on the way.
struct Place {
  float* dst;
  int64_t offset;    // of it in dst, as operands of post-ops are stored that have dst's shape
  int64_t channel;   // of dst
  int64_t channels;  // from there on, of the group or of the groups in a vector
};

void Finish(const Geometry& g, const Output& output, const Place& place, const float* sums,
            int64_t pixels, int64_t vectors) {
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t channel = place.channel + v * kLanes, left = place.channels - v * kLanes;
    auto read = [&](const float* from) {
      return left < kLanes ? LoadSome(from, left) : Load(from);
    };
    const Vec bias = output.bias ? read(output.bias + channel) : Vec{};
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t at = p * g.dst.column + v * kLanes;
      Vec sum = Load(sums + (p * vectors + v) * kLanes) + bias;
      for (int i = 0; i < output.post_op_count; ++i) {
        const PostOp& op = output.post_ops[i];
        Vec other{};
        if (op.code == PostOp::Code::kSum) {
          other = read(place.dst + at);
        } else if (op.data) {
          other = read(op.data + (op.per_channel ? channel : place.offset + at));
        }
        sum = Apply(op, sum, other);
      }
      AskFor<true>(place.dst + at + g.dst.row, 1);
      if (left < kLanes) {
        StoreSome(place.dst + at, sum, left);
      } else {
        Store(place.dst + at, sum);
      }
    }
  }
}

using RunTileFunction = void (*)(const Geometry&, const Tile&, float*);

constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 14, 20, 28};
constexpr size_t kSizeCount = sizeof(kSizes) / sizeof(kSizes[0]);

// By the place of their pixels in kSizes; null where a tile does not fit registers.
using Tiles = std::array<RunTileFunction, kSizeCount>;

template <int kV, bool kSpread, size_t... kAt>
constexpr Tiles TilesOf(std::index_sequence<kAt...>) {
  auto tile = [](auto size) -> RunTileFunction {
    constexpr int kP = decltype(size)::value;
    if constexpr (kP * kV + (kP < kV ? kP : kV) + 1 <= MXPLAN_REGISTERS) {
      return RunTile<kP, kV, kSpread>;
    } else {
      return nullptr;
    }
  };
  return {tile(std::integral_constant<int, kSizes[kAt]>())...};
}

Tiles TilesFor(int64_t vectors, bool spread) {
  constexpr auto kAll = std::make_index_sequence<kSizeCount>();
  if (spread) return TilesOf<1, true>(kAll);
  if (vectors == 1) return TilesOf<1, false>(kAll);
  if (vectors == 2) return TilesOf<2, false>(kAll);
  if (vectors == 3) return TilesOf<3, false>(kAll);
  return TilesOf<4, false>(kAll);
}

// Columns cut into tiles, as places in kSizes: those that take the least time together.
class Cut {
 public:
  Cut(int64_t columns, int64_t vectors, bool spread) : tiles_(TilesFor(vectors, spread)) {
    // Fewer sums than that wait for each other; weights are read for each tile.
    constexpr int64_t kSumsAtOnce = 8, kBeginning = 2;
    constexpr int64_t kMost = 28;
    int64_t spent[kMost + 1] = {};
    size_t last[kMost + 1] = {};
    for (; columns > 2 * kMost; columns -= kSizes[Largest()]) Add(Largest());
    // The rest, at most twice the largest tile, in two halves.
    for (int64_t rest : {columns - columns / 2, columns / 2}) {
      for (int64_t n = 1; n <= rest; ++n) {
        spent[n] = 0;
        for (size_t i = 0; i < kSizeCount; ++i) {
          if (!tiles_[i] || kSizes[i] > n) continue;
          int64_t sums = kSizes[i] * vectors;
          int64_t all = spent[n - kSizes[i]] + std::max(sums, kSumsAtOnce) + vectors + kBeginning;
          if (spent[n] != 0 && all >= spent[n]) continue;
          spent[n] = all;
          last[n] = i;
        }
      }
      for (int64_t n = rest; n > 0; n -= kSizes[last[n]]) Add(last[n]);
    }
  }

  int64_t count() const { return count_; }
  int64_t pixels(int64_t part) const { return kSizes[parts_[part]]; }
  RunTileFunction run(int64_t part) const { return tiles_[parts_[part]]; }

 private:
  void Add(size_t size) { parts_[count_++] = static_cast<uint8_t>(size); }
  size_t Largest() const {
    size_t at = kSizeCount - 1;
    while (!tiles_[at]) --at;
    return at;
  }

  Tiles tiles_;
  uint8_t parts_[kMostColumns];
  int64_t count_ = 0;
};

void Run(const Geometry& g, const Part& part, const Output& output, float* ring) {
  const int64_t columns = part.right - part.left;
  const Row kept(g, columns);
  const int64_t ring_rows = RingRows(g);
  const int64_t channels = g.spread ? kLanes : g.outputs;
  const int64_t vectors = (channels + kLanes - 1) / kLanes;
  const int64_t vector_weights = g.y.filter * g.x.filter * g.inputs * kLanes;
  const Spreading spreading(g);
  const Cut whole(columns, std::min(vectors, kMostVectors), g.spread);
  const bool rests = vectors > kMostVectors && vectors % kMostVectors != 0;
  const Cut rest(rests ? columns : 0, vectors % kMostVectors, g.spread);
  int64_t taps[kMostFilter];
  for (int64_t x = 0; x < g.x.filter; ++x) {
    const int64_t column = x * g.x.dilation, pixel = g.spread ? kLanes : 1;
    taps[x] = column % g.x.stride * kept.phase + column / g.x.stride * pixel;
  }
  float sums[MXPLAN_REGISTERS * kLanes];
  int64_t filled = part.top * g.y.stride - g.y.padding;  // rows of src before it are there
  for (int64_t row = part.top; row < part.bottom; ++row) {
    const int64_t first = row * g.y.stride - g.y.padding;
    for (filled = std::max(filled, first); filled < first + ring_rows; ++filled) {
      // Rows are counted from -padding on, so that places in the ring are not negative.
      FillRow(g, spreading, part.src, filled, part.left * g.x.stride - g.x.padding, kept,
              ring + (filled + g.y.padding) % ring_rows * kept.floats);
    }
    const float* rows[kMostFilter];
    for (int64_t v = 0; v < vectors; v += kMostVectors) {
      const int64_t together = std::min(kMostVectors, vectors - v);
      const Cut& cut = together == kMostVectors || vectors < kMostVectors ? whole : rest;
      Tile tile{rows, taps, kept.channel, part.weights + v * vector_weights, vector_weights};
      Place place{nullptr, 0, part.first_output + v * kLanes, channels - v * kLanes};
      int64_t x = 0;
      for (int64_t y = 0; y < g.y.filter; ++y) {
        const int64_t at = (first + y * g.y.dilation + g.y.padding) % ring_rows;
        rows[y] = ring + at * kept.floats;
      }
      for (int64_t i = 0; i < cut.count(); x += cut.pixels(i), ++i) {
        cut.run(i)(g, tile, sums);
        const int64_t at = row * g.dst.row + (part.left + x) * g.dst.column + v * kLanes;
        place.dst = part.dst + at;
        place.offset = part.offset + at;
        Finish(g, output, place, sums, cut.pixels(i), together);
        for (int64_t y = 0; y < g.y.filter; ++y) rows[y] += cut.pixels(i) * (g.spread ? kLanes : 1);
      }
    }
  }
}

Kernels Get(const char* name) { return {name, kLanes, ScratchFloats, Run}; }

}  // namespace
}  // namespace mxplan::grouped
