// Attention on bfloat16 by tiles of AMX, of rows that share keys; included behind
// short_kernels_impl.h and amx_impl.h by a file that names an instruction set with tiles.
//
//   queries  [rows][depth]                           copies, with zeros up to whole steps
//   keys     [keys / 16][depth / 32][16 pairs][16 keys][2]
//   scores   [rows of a turn][keys]                  float32; then weights, rounded
//   values   [width / 16][keys / 32][16 pairs][16 columns][2]
//
// Keys and values are packed once for all rows of a call, a block of keys at a time, with zeros
// behind the last number and the last key.  Up to 32 rows take a turn: their scores, a softmax in
// float32 with lanes along the keys, their results.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_TILES_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_TILES_IMPL_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "onednn/amx/amx_impl.h"
#include "onednn/attention/kernels.h"

namespace mxplan::attention {
namespace {

constexpr int64_t kTogether = 2 * kLanes;  // numbers of a step, keys of two blocks, rows of a turn
constexpr int64_t kMostGroups = 8;         // of kLanes rows, that a call has
constexpr int64_t kMostOfCall = kMostGroups * kLanes;
// Rows of a turn stand beside each other in the nearest cache.
constexpr int64_t kScoresRow = kKeysAtOnce + kLanes;
constexpr int64_t kWeightsRow = kScoresRow * kPair;

struct OfShorts {
  static void Low() { _tile_dpbf16ps(0, 4, 6); }
  static void LowNext() { _tile_dpbf16ps(1, 4, 7); }
  static void High() { _tile_dpbf16ps(2, 5, 6); }
  static void HighNext() { _tile_dpbf16ps(3, 5, 7); }
};

constexpr int64_t Whole(int64_t count) { return (count + kTogether - 1) / kTogether * kTogether; }

// Scratch of a call, in whole lines of the caches.
struct TileScratch {
  TileScratch(float* from, int64_t depth, int64_t width) {
    constexpr uintptr_t kLine = 64;
    next = (reinterpret_cast<uintptr_t>(from) + kLine - 1) / kLine * kLine;
    queries = Take<Short>(kMostOfCall * Whole(depth));
    keys = Take<Short>(kKeysAtOnce * Whole(depth));
    values = Take<Short>(kKeysAtOnce * Whole(width));
    scores = Take<float>(kTogether * kScoresRow);
    results = Take<float>(kTogether * Whole(width));
    sums = Take<float>(kMostOfCall * RoundUp(width));
  }

  template <typename Number>
  Number* Take(int64_t count) {
    auto* taken = reinterpret_cast<Number*>(next);
    next += static_cast<uintptr_t>(count) * sizeof(Number);
    return taken;
  }

  Short *queries = nullptr, *keys = nullptr, *values = nullptr;
  float* scores = nullptr;   // [rows of a turn][kScoresRow]; then weights in front of each row
  float* results = nullptr;  // [rows of a turn][width up to two vectors], of one block of keys
  float* sums = nullptr;     // [rows][width up to whole vectors], of the keys before
  uintptr_t next = 0;
};

// The largest lanes of kLanes vectors, that of v[i] in lane i.
template <int64_t kHalf = kLanes / 2>
MXPLAN_INLINE Vec Maxima(Vec* v) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < kHalf; ++i) {
    v[i] = Max(Cross<kHalf, 0>(v[i], v[i + kHalf]), Cross<kHalf, 3>(v[i], v[i + kHalf]));
  }
  if constexpr (kHalf > 1) {
    return Maxima<kHalf / 2>(v);
  } else {
    return v[0];
  }
}

// `number` in the first `count` lanes, -inf in the rest.
MXPLAN_INLINE Vec FirstLanes(Vec number, int64_t count) {
  return reinterpret_cast<Vec>(
      _mm512_mask_blend_ps(static_cast<__mmask16>(FirstBits(std::min(count, kLanes))),
                           _mm512_set1_ps(-kInfinity), reinterpret_cast<__m512>(number)));
}

// The first `count` numbers of a step, 0 behind them.
MXPLAN_INLINE Words LoadStep(const Short* from, int64_t count) {
  return count >= kTogether ? LoadWords(from) : count > 0 ? LoadPairs(from, count) : Words{};
}

// Keys from `begin` on, in blocks of 16, two of which belong together.
void PackKeys(const ShortBlock& block, int64_t begin, int64_t keys, Short* to) {
  for (int64_t k = 0; k < Whole(keys); k += kLanes) {
    const Short* from = block.key.data + (begin + k) * block.key.stride;
    for (int64_t d = 0; d < block.depth; d += kTogether, to += kTogether * kLanes) {
      Vec v[kLanes];
      if (k + kLanes <= keys && d + kTogether <= block.depth) {
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i) {
          v[i] = reinterpret_cast<Vec>(LoadWords(from + i * block.key.stride + d));
        }
      } else {
        for (int64_t i = 0; i < kLanes; ++i) {
          const int64_t there = k + i < keys ? block.depth - d : 0;
          v[i] = reinterpret_cast<Vec>(LoadStep(from + i * block.key.stride + d, there));
        }
      }
      Transpose(v);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        StoreWords(to + i * kTogether, reinterpret_cast<Words>(v[i]));
      }
    }
  }
}

// 16 columns of values of keys from `from` on, two by two; `load` reads those of a key.
template <typename LoadColumns>
MXPLAN_INLINE void PackColumns(const Short* from, int64_t stride, int64_t keys, Short* to,
                               const LoadColumns& load) {
  int64_t k = 0;
  for (; k + 1 < keys; k += kPair, from += kPair * stride) {
    StoreWords(to + k * kLanes, load(from) | load(from + stride) << kHalf);
  }
  if (k < keys) {
    StoreWords(to + k * kLanes, load(from));
    k += kPair;
  }
  for (; k < Whole(keys); k += kPair) StoreWords(to + k * kLanes, Words{});
}

// Values of keys from `begin` on in blocks of 16 columns, each with room for kKeysAtOnce keys.
void PackValues(const ShortBlock& block, int64_t begin, int64_t keys, Short* to) {
  const int64_t stride = block.value.stride;
  const Short* from = block.value.data + begin * stride;
  for (int64_t c = 0; c < block.width; c += kLanes, from += kLanes, to += kKeysAtOnce * kLanes) {
    const int64_t left = block.width - c;
    if (left >= kLanes) {
      PackColumns(from, stride, keys, to, [&](const Short* at) __attribute__((always_inline)) {
        return LoadShort(at, kLanes);
      });
    } else {
      PackColumns(from, stride, keys, to, [&](const Short* at) __attribute__((always_inline)) {
        return LoadShort(at, left);
      });
    }
  }
}

// The keys of a block that the rows of a turn are multiplied with: whole steps.
struct Steps {
  int64_t begin = 0, end = 0;
  int64_t count() const { return (end - begin) / kTogether; }
};

// Scores of a row, some of which become -inf, and then weights.
struct RowOfScores {
  float* scores;
  const float* mask;  // of these keys; null for none
  int64_t mask_stride;
  Steps steps;
  int64_t seen;  // keys that it sees, up to the end of the last step

  // Masks scores; returns the largest ones in the lanes.  With kPlain there is no mask, and what
  // they are multiplied with is above 0 and comes with the exponentials.
  template <bool kPlain>
  MXPLAN_INLINE Vec Masked(float scale) const {
    Vec largest = Broadcast(-kInfinity);
    int64_t k = steps.begin;
    for (; k + kLanes <= seen; k += kLanes) {
      Vec score = Load(scores + k);
      if constexpr (!kPlain) {
        score *= scale;
        if (mask) score += mask_stride == 0 ? Broadcast(*mask) : Load(mask + k);
        Store(scores + k, score);
      }
      largest = Max(score, largest);
    }
    if (k >= seen) return largest;
    Vec score = Load(scores + k);
    if constexpr (!kPlain) {
      score *= scale;
      if (mask) score += mask_stride == 0 ? Broadcast(*mask) : LoadSome(mask + k, seen - k);
    }
    score = FirstLanes(score, seen - k);
    Store(scores + k, score);
    return Max(score, largest);
  }

  // Weights by the differences from `base`, and their sums in the lanes.  `factor`: log2(e) times
  // what plain scores are multiplied with.
  template <bool kPlain>
  MXPLAN_INLINE Vec Weighted(float base, float factor) const {
    const float less = base * -factor;
    auto weight = [&](int64_t k) __attribute__((always_inline)) {
      const Vec score = Load(scores + k);
      return kPlain ? PowerOfTwo(score * factor + less) : RoughExp(score, Broadcast(base));
    };
    auto* weights = reinterpret_cast<Short*>(scores);  // each behind the scores that are read next
    Vec sum{};
    int64_t k = steps.begin;
    for (; k < seen; k += kTogether) {
      const Vec low = weight(k), high = k + kLanes < seen ? weight(k + kLanes) : Vec{};
      sum += low + high;
      const auto both =
          _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low));
      StoreWords(weights + k, reinterpret_cast<Words>(both));
    }
    for (; k < steps.end; k += kTogether) StoreWords(weights + k, Words{});
    return sum;
  }
};

// The rows of a call, and what runs along with the blocks of keys.
class TileCall {
 public:
  TileCall(const ShortBlock& block, const ShortQuery* queries, int64_t count, float* memory)
      : block_(block), queries_(queries), scratch_(memory, block.depth, block.width) {
    for (int64_t first = 0; first < count; first += kTogether) {
      Turn& turn = turns_[turns_count_++];
      turn = {first, std::min(kTogether, count - first), {}};
      turn.range = Seen(block, queries + first, turn.count);
      if (turn.range.begin >= turn.range.end) {
        Dead(block, queries + first, turn.count, kShortNan);
        --turns_count_;
        continue;
      }
      begin_ = std::min(begin_, turn.range.begin);
      end_ = std::max(end_, turn.range.end);
    }
    Copy();
  }

  void Run() {
    const bool plain = !block_.masked && block_.scale > 0;
    for (int64_t begin = begin_; begin < end_; begin += kKeysAtOnce) {
      const int64_t keys = std::min(kKeysAtOnce, end_ - begin);
      PackKeys(block_, begin, keys, scratch_.keys);
      PackValues(block_, begin, keys, scratch_.values);
      amx::Written(scratch_.keys);
      for (int64_t i = 0; i < turns_count_; ++i) {
        const Turn& turn = turns_[i];
        const Range& range = turn.range;
        if (range.begin >= begin + keys || range.end <= begin) continue;
        const Steps steps{std::max<int64_t>(range.begin - begin, 0) / kTogether * kTogether,
                          Whole(std::min(range.end - begin, keys))};
        Scores(turn, steps);
        const bool first = range.begin >= begin, last = range.end <= begin + keys;
        for (int64_t row = 0; row < turn.count; row += kLanes) {
          if (plain) {
            Softmax<true>(turn, row, begin, steps, first, last);
          } else {
            Softmax<false>(turn, row, begin, steps, first, last);
          }
        }
        Results(turn, steps, first, last);
      }
    }
  }

 private:
  // Rows that are multiplied together.
  struct Turn {
    int64_t first = 0, count = 0;
    Range range{};
  };

  void Copy() const {
    const int64_t row = Whole(block_.depth);
    for (int64_t i = 0; i < turns_count_; ++i) {
      for (int64_t r = turns_[i].first; r < turns_[i].first + turns_[i].count; ++r) {
        for (int64_t d = 0; d < block_.depth; d += kTogether) {
          StoreWords(scratch_.queries + r * row + d,
                     LoadStep(queries_[r].data + d, block_.depth - d));
        }
      }
    }
  }

  static amx::Rows RowsAt(const Short* from, int64_t row, int64_t count) {
    amx::Rows rows;
    rows.stride = row * static_cast<int64_t>(sizeof(Short));
    rows.count[0] = std::min(count, kLanes);
    rows.count[1] = count - rows.count[0];
    rows.from[0] = reinterpret_cast<const uint8_t*>(from);
    rows.from[1] = rows.from[0] + kLanes * rows.stride;
    return rows;
  }

  // Sums of rows and blocks of 16 columns from `first` to `end`, of as many steps.
  void Multiply(const amx::Rows& rows, int64_t steps, const Short* right, int64_t block,
                int64_t first, int64_t end, float* sums, int64_t row) {
    tiles_.Take(rows, amx::kStep);
    amx::Steps all;
    all.of_group = steps;
    const auto* from = reinterpret_cast<const uint8_t*>(right);
    const int64_t stride = row * static_cast<int64_t>(sizeof(float));
    block *= static_cast<int64_t>(sizeof(Short));
    const auto multiply = [&](auto two_halves, auto two_blocks, int64_t at) {
      amx::MultiplyBlocks<OfShorts, two_halves, two_blocks>(
          rows, all, from + at * block, block, nullptr,
          reinterpret_cast<uint8_t*>(sums + at * kLanes), stride);
    };
    const auto of_halves = [&](auto two_halves) {
      for (; first + 1 < end; first += 2) multiply(two_halves, std::true_type(), first);
      if (first < end) multiply(two_halves, std::false_type(), first);
    };
    rows.count[1] > 0 ? of_halves(std::true_type()) : of_halves(std::false_type());
    amx::Written(sums);
  }

  void Scores(const Turn& turn, const Steps& steps) {
    const int64_t depth = Whole(block_.depth);
    Multiply(RowsAt(scratch_.queries + turn.first * depth, depth, turn.count), depth / kTogether,
             scratch_.keys, depth * kLanes, steps.begin / kLanes, steps.end / kLanes,
             scratch_.scores, kScoresRow);
  }

  // Weights of up to kLanes rows from `row` of a turn on.
  template <bool kPlain>
  __attribute__((noinline)) void Softmax(const Turn& turn, int64_t row, int64_t begin,
                                         const Steps& steps, bool first, bool last) {
    const int64_t count = std::min(kLanes, turn.count - row);
    const ShortQuery* queries = queries_ + turn.first + row;
    const auto at = [&](int64_t i) __attribute__((always_inline)) {
      const float* mask = block_.masked ? queries[i].mask + begin * block_.mask_stride : nullptr;
      const int64_t seen = std::clamp(queries[i].visible - begin, steps.begin, steps.end);
      return RowOfScores{scratch_.scores + (row + i) * kScoresRow, mask, block_.mask_stride, steps,
                         seen};
    };
    Vec of_rows[kLanes];
    for (int64_t i = 0; i < count; ++i) of_rows[i] = at(i).template Masked<kPlain>(block_.scale);
    for (int64_t i = count; i < kLanes; ++i) of_rows[i] = Broadcast(-kInfinity);
    Running<1>& running = running_[(turn.first + row) / kLanes];
    const Vec before = first ? Broadcast(-kInfinity) : running.largest[0];
    const Vec largest = Max(Maxima(of_rows), before);
    const Vec base = largest == -kInfinity ? Vec{} : largest;
    running.largest[0] = largest;
    const float factor = kPlain ? block_.scale * kLog2e : kLog2e;
    for (int64_t i = 0; i < count; ++i) {
      of_rows[i] = at(i).template Weighted<kPlain>(base[i], factor);
    }
    for (int64_t i = count; i < kLanes; ++i) of_rows[i] = Vec{};
    Vec sum = Sums(of_rows);
    if (!first) {
      const Vec less = PowerOfTwo((before - base) * factor);
      sum += running.sum[0] * less;
      Store(factors_ + row, less);
    }
    running.sum[0] = sum;
    if (!last) return;
    for (int64_t i = 0; i < count; ++i) inverse_[row + i] = Inverse(block_, sum[i]);
  }

  void Results(const Turn& turn, const Steps& steps, bool first, bool last) {
    amx::Written(scratch_.scores);
    const int64_t columns = Whole(block_.width);
    const auto* weights = reinterpret_cast<const Short*>(scratch_.scores);
    Multiply(RowsAt(weights + steps.begin, kWeightsRow, turn.count), steps.count(),
             scratch_.values + steps.begin * kLanes, kKeysAtOnce * kLanes, 0,
             RoundUp(block_.width) / kLanes, scratch_.results, columns);
    for (int64_t row = 0; row < turn.count; ++row) {
      const ShortQuery& query = queries_[turn.first + row];
      float* before = scratch_.sums + (turn.first + row) * RoundUp(block_.width);
      const float* sums = scratch_.results + row * columns;
      const float factor = first ? 0.0F : factors_[row], inverse = last ? inverse_[row] : 0.0F;
      for (int64_t c = 0; c < block_.width; c += kLanes) {
        Vec sum = Load(sums + c);
        if (!first) sum += Load(before + c) * factor;
        if (!last) {
          Store(before + c, sum);
        } else if (inverse == 0) {
          StoreShort(query.dst + c, block_.width - c, Vec{});
        } else {
          StoreShort(query.dst + c, block_.width - c, sum * inverse);
        }
      }
    }
  }

  const ShortBlock& block_;
  const ShortQuery* queries_;
  TileScratch scratch_;
  amx::Tiles tiles_;
  Turn turns_[kMostOfCall / kTogether];
  int64_t turns_count_ = 0;
  int64_t begin_ = std::numeric_limits<int64_t>::max(), end_ = 0;
  Running<1> running_[kMostGroups];
  float factors_[kTogether], inverse_[kTogether];  // of a turn
};

void TileRows(const ShortBlock& block, const ShortQuery* queries, int64_t count, float* memory) {
  TileCall(block, queries, count, memory).Run();
}

int64_t TileFloats(int64_t depth, int64_t width) {
  constexpr int64_t kBytes = sizeof(float);
  const auto bytes = static_cast<int64_t>(TileScratch(nullptr, depth, width).next);
  return bytes / kBytes + kLanes;
}

}  // namespace
}  // namespace mxplan::attention

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_TILES_IMPL_H_
