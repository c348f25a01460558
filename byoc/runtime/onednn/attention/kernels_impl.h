// The kernels of onednn/attention/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it.  MXPLAN_ROWS, _KEYS and _VALUES are tiles of registers:
// accumulators of scores are _KEYS / vectors of rows at once, those of results _ROWS * _VALUES.
#include <algorithm>
#include <cstring>

#include "onednn/attention/kernels.h"
#include "onednn/attention/products_impl.h"
#include "onednn/attention/vectors.h"

namespace mxplan::attention {
namespace {

constexpr int64_t kMostVectors = 3;  // of rows at once
constexpr int64_t kMostRows = kMostVectors * kLanes;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kFar = -1e38F;  // a mask below that leaves nothing of a score

constexpr int64_t RoundUp(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Scratch of a call.
struct Scratch {
  Scratch(float* from, int64_t depth, int64_t width) : queries(from) {
    scores = queries + RoundUp(depth) * kMostRows;
    masks = scores + kKeysAtOnce * kMostRows;
    values = masks + kKeysAtOnce * kMostRows;
    end = values + kKeysAtOnce * RoundUp(width) + kLanes;
  }
  float* queries;  // [depth][rows]
  float* scores;   // [keys][rows]
  float* masks;    // [keys][rows]
  float* values;   // [keys][width up to whole vectors]
  float* end;
};

// The keys that any of the rows sees: masks leave nothing of the others.  All of them where a row
// sees none, since such a row is NaN, or the mean of all.
struct Range {
  int64_t begin, end;
};

template <typename Number>
Range Seen(const BlockOfNumbers<Number>& block, const QueryOfNumbers<Number>* queries,
           int64_t count) {
  int64_t low = block.keys, high = 0, visible = 0;
  int64_t different = block.masked && block.one_mask ? 1 : count;
  for (int64_t r = 0; r < count; ++r) visible = std::max(visible, queries[r].visible);
  visible = std::min(visible, block.keys);
  if (!block.masked || block.mask_stride == 0) return {0, visible};
  for (int64_t r = 0; r < different; ++r) {
    const float* mask = queries[r].mask;
    int64_t end = visible;
    while (end > high && mask[end - 1] < kFar) --end;
    int64_t begin = 0;
    while (begin < end && mask[begin] < kFar) ++begin;
    if (begin == end) return {0, visible};
    low = std::min(low, begin);
    high = std::max(high, end);
  }
  return {low, high};
}

// to[i][row] = factor * from(row)[begin + i], of kQ vectors of rows.
template <int64_t kQ, typename From>
void CopyTransposed(const From& from, int64_t begin, int64_t count, float factor, float* to) {
  constexpr int64_t kRows = kQ * kLanes;
  for (int64_t j = 0; j < kQ; ++j) {
    const float* rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = from(j * kLanes + i) + begin;
    int64_t at = 0;
    for (; at + kLanes <= count; at += kLanes) {
      Vec v[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) v[i] = Load(rows[i] + at);
      Transpose(v);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) Store(to + (at + i) * kRows + j * kLanes, v[i] * factor);
    }
    for (; at < count; ++at) {
      for (int64_t i = 0; i < kLanes; ++i) to[at * kRows + j * kLanes + i] = rows[i][at] * factor;
    }
  }
}

// The numbers of a softmax that run along with the blocks of keys.
template <int64_t kQ>
struct Running {
  Vec largest[kQ], sum[kQ], factor[kQ];
  Ints visible[kQ];
};

// Scores become e to their difference from `base`; their sums are added to `sum`.
template <int64_t kQ>
struct PlainWeights {
  MXPLAN_INLINE void operator()(float* scores, int64_t keys, const Vec* base, Vec* sum) const {
    for (int64_t k = 0; k < keys; ++k) {
      for (int64_t j = 0; j < kQ; ++j) {
        float* at = scores + (k * kQ + j) * kLanes;
        Vec p = Exp(Load(at) - base[j]);
        sum[j] += p;
        Store(at, p);
      }
    }
  }
};

// Masks scores, then makes weights of their differences from the largest one.
template <int64_t kQ, typename Number, typename Exponentials>
void Weights(const BlockOfNumbers<Number>& block, const QueryOfNumbers<Number>* queries,
             int64_t begin, int64_t keys, bool first, int64_t all_visible, const float* masks,
             float* scores, Running<kQ>* running, const Exponentials& exponentials) {
  constexpr int64_t kRows = kQ * kLanes;
  Vec largest[kQ], before[kQ];
  for (int64_t j = 0; j < kQ; ++j) before[j] = largest[j] = running->largest[j];
  if (block.masked && block.one_mask) {
    const float* mask = queries[0].mask + begin * block.mask_stride;
    for (int64_t k = 0; k < keys; ++k) {
      for (int64_t j = 0; j < kQ; ++j) {
        float* at = scores + k * kRows + j * kLanes;
        Store(at, Load(at) + mask[k * block.mask_stride]);
      }
    }
  } else if (block.masked) {
    for (int64_t at = 0; at < keys * kRows; at += kLanes) {
      Store(scores + at, Load(scores + at) + Load(masks + at));
    }
  }
  for (int64_t k = std::max<int64_t>(0, all_visible - begin); k < keys; ++k) {
    for (int64_t j = 0; j < kQ; ++j) {
      float* at = scores + k * kRows + j * kLanes;
      Ints seen = running->visible[j] > static_cast<int32_t>(begin + k);
      Store(at, seen ? Load(at) : Broadcast(-kInfinity));
    }
  }
  for (int64_t k = 0; k < keys; ++k) {
    for (int64_t j = 0; j < kQ; ++j) {
      largest[j] = Max(Load(scores + k * kRows + j * kLanes), largest[j]);
    }
  }
  Vec base[kQ], sum[kQ];
  for (int64_t j = 0; j < kQ; ++j) {
    running->largest[j] = largest[j];
    base[j] = largest[j] == -kInfinity ? Vec{} : largest[j];
    running->factor[j] = Exp(before[j] - base[j]);
    sum[j] = first ? Vec{} : running->sum[j] * running->factor[j];
  }
  exponentials(scores, keys, base, sum);
  for (int64_t j = 0; j < kQ; ++j) running->sum[j] = sum[j];
}

// Values of keys from `begin` on; copied where whole vectors would reach beyond a row's end.
Rows WholeVectors(const Block& block, int64_t begin, int64_t keys, float* copy) {
  Rows value{block.value.data + begin * block.value.stride, block.value.stride};
  if (block.width % kLanes == 0) return value;
  int64_t stride = RoundUp(block.width);
  for (int64_t k = 0; k < keys; ++k) {
    std::memcpy(copy + k * stride, value.data + k * value.stride,
                static_cast<size_t>(block.width) * sizeof(float));
    std::fill(copy + k * stride + block.width, copy + (k + 1) * stride, 0.0F);
  }
  return {copy, stride};
}

template <typename Number>
void Dead(const BlockOfNumbers<Number>& block, const QueryOfNumbers<Number>* queries, int64_t count,
          Number nan) {
  Number fill = block.dead_rows_are_zero || block.keys == 0 ? Number{} : nan;
  for (int64_t r = 0; r < count; ++r) {
    std::fill(queries[r].dst, queries[r].dst + block.width, fill);
  }
}

// One over a sum; 0 for a row that is to be zero, of which there is no other.
template <typename Number>
MXPLAN_INLINE float Inverse(const BlockOfNumbers<Number>& block, float sum) {
  bool alive = sum > 0 && sum < kInfinity;
  return block.dead_rows_are_zero && !alive ? 0.0F : 1.0F / sum;
}

// Running numbers of rows before any key; returns the number of keys that every row sees.
template <int64_t kQ, typename At>
int64_t Begin(const At& at, int64_t keys, Running<kQ>* running) {
  int64_t all_visible = keys;
  for (int64_t j = 0; j < kQ; ++j) {
    running->largest[j] = Broadcast(-kInfinity);
    for (int64_t i = 0; i < kLanes; ++i) {
      int64_t visible = std::min(at(j * kLanes + i).visible, keys);
      running->visible[j][i] = static_cast<int32_t>(visible);
      all_visible = std::min(all_visible, visible);
    }
  }
  return all_visible;
}

// masks[key][row] of keys from `begin` on.
template <int64_t kQ, typename Number, typename At>
void CopyMasks(const BlockOfNumbers<Number>& block, const At& at, int64_t begin, int64_t keys,
               float* masks) {
  constexpr int64_t kRows = kQ * kLanes;
  if (block.mask_stride == 1) {
    CopyTransposed<kQ>([&](int64_t row) { return at(row).mask; }, begin, keys, 1.0F, masks);
  } else {
    for (int64_t i = 0; i < keys * kRows; ++i) masks[i] = *at(i % kRows).mask;
  }
}

template <int64_t kQ>
void RowsOf(const Block& block, const Query* queries, int64_t count, float* memory) {
  constexpr int64_t kRows = kQ * kLanes;
  Range range = Seen(block, queries, count);
  if (range.begin >= range.end) return Dead(block, queries, count, kNan);
  Scratch scratch(memory, block.depth, block.width);
  auto at = [&](int64_t row) -> const Query& { return queries[std::min(row, count - 1)]; };
  CopyTransposed<kQ>([&](int64_t row) { return at(row).data; }, 0, block.depth, block.scale,
                     scratch.queries);
  Running<kQ> running;
  int64_t all_visible = Begin(at, block.keys, &running);
  for (int64_t begin = range.begin; begin < range.end; begin += kKeysAtOnce) {
    int64_t keys = std::min(kKeysAtOnce, range.end - begin);
    bool first = begin == range.begin, last = begin + keys == range.end;
    Scores<kQ>(scratch.queries, block.key.data + begin * block.key.stride, block.key.stride,
               block.depth, keys, scratch.scores);
    if (block.masked && !block.one_mask) CopyMasks<kQ>(block, at, begin, keys, scratch.masks);
    Weights<kQ>(block, queries, begin, keys, first, all_visible, scratch.masks, scratch.scores,
                &running, PlainWeights<kQ>());
    float factors[kRows], inverse[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      factors[r] = running.factor[r / kLanes][r % kLanes];
      inverse[r] = last ? Inverse(block, running.sum[r / kLanes][r % kLanes]) : 1.0F;
    }
    Values<MXPLAN_ROWS>(scratch.scores, kRows, 1, WholeVectors(block, begin, keys, scratch.values),
                        keys, count, block.width,
                        {queries, first ? nullptr : factors, last ? inverse : nullptr});
  }
}

// A score for each of kLanes keys; with kTail of `keys`, and the last one's again for the others.
// Their values are brought into the second cache meanwhile: memory gives two streams faster than
// one after the other.
template <bool kTail>
MXPLAN_INLINE Vec ScoresOfRow(const float* query, const float* key, int64_t stride, int64_t depth,
                              int64_t keys, Rows values) {
  const float* from[kLanes];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) from[i] = key + (kTail ? std::min(i, keys - 1) : i) * stride;
  Vec sums[kLanes] = {};
  int64_t d = 0;
  // Key by key, as they stand, so that what is read comes in order.
  constexpr int64_t kV = 4;
  for (; d + kV * kLanes <= depth; d += kV * kLanes) {
    Vec q[kV];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kV; ++j) q[j] = Load(query + d + j * kLanes);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < kV; ++j) {
        __builtin_prefetch(values.data + i * values.stride + d + j * kLanes, 0, 2);
        sums[i] += q[j] * Load(from[i] + d + j * kLanes);
      }
    }
  }
  for (; d + kLanes <= depth; d += kLanes) {
    Vec q = Load(query + d);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) sums[i] += q * Load(from[i] + d);
  }
  Vec total = Sums(sums);
  for (; d < depth; ++d) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) total[i] += query[d] * from[i][d];
  }
  return total;
}

template <typename Number>
MXPLAN_INLINE Vec MaskOf(const BlockOfNumbers<Number>& block, const float* mask, int64_t left) {
  if (block.mask_stride == 0) return Broadcast(*mask);
  if (left >= kLanes) return Load(mask);
  Vec numbers{};
  std::memcpy(&numbers, mask, static_cast<size_t>(left) * sizeof(float));
  return numbers;
}

// One row of queries.  `score` makes those of kLanes keys from one on, of which some are left, and
// `sum` adds values of keys from one on by weights in `p`.
template <typename Number, typename Score, typename Values>
MXPLAN_INLINE void OneRow(const BlockOfNumbers<Number>& block, const QueryOfNumbers<Number>& query,
                          float* p, Number nan, const Score& score_of, const Values& sum_values) {
  Range range = Seen(block, &query, 1);
  range.end = std::min(range.end, query.visible);
  if (range.begin >= range.end) return Dead(block, &query, 1, nan);
  float largest = -kInfinity, total = 0;
  for (int64_t begin = range.begin; begin < range.end; begin += kKeysAtOnce) {
    int64_t keys = std::min(kKeysAtOnce, range.end - begin);
    const float* mask = block.masked ? query.mask + begin * block.mask_stride : nullptr;
    Vec most = Broadcast(-kInfinity);
    for (int64_t k = 0; k < keys; k += kLanes) {
      int64_t left = keys - k;
      Vec score = score_of(query, begin + k, left) * block.scale;
      if (mask) score += MaskOf(block, mask + k * block.mask_stride, left);
      if (left < kLanes) {
        for (int64_t i = left; i < kLanes; ++i) score[i] = -kInfinity;
      }
      most = Max(score, most);
      Store(p + k, score);
    }
    float before = largest, of_lanes = Largest(most);
    largest = of_lanes > largest ? of_lanes : largest;
    float base = largest == -kInfinity ? 0.0F : largest;
    Vec sums{};
    for (int64_t k = 0; k < keys; k += kLanes) {
      Vec weight = Exp(Load(p + k) - base);
      sums += weight;
      Store(p + k, weight);
    }
    bool first = begin == range.begin, last = begin + keys == range.end;
    float factor = Exp(Broadcast(before - base))[0];
    total = (first ? 0.0F : total * factor) + Sum(sums);
    float inverse = last ? Inverse(block, total) : 1.0F;
    sum_values(query, begin, keys, first ? nullptr : &factor, last ? &inverse : nullptr);
  }
}

[[maybe_unused]] void Few(const Block& block, const Query* queries, int64_t count, float* memory) {
  Scratch scratch(memory, block.depth, block.width);
  auto scores = [&](const Query& query, int64_t key, int64_t left) {
    const float* from = block.key.data + key * block.key.stride;
    const Rows values{block.value.data + key * block.value.stride, block.value.stride};
    return left >= kLanes
               ? ScoresOfRow<false>(query.data, from, block.key.stride, block.depth, left, values)
               : ScoresOfRow<true>(query.data, from, block.key.stride, block.depth, left, values);
  };
  auto values = [&](const Query& query, int64_t begin, int64_t keys, const float* factor,
                    const float* inverse) {
    RowValues(scratch.scores, WholeVectors(block, begin, keys, scratch.values), keys, block.width,
              {&query, factor, inverse});
  };
  for (int64_t r = 0; r < count; ++r) {
    OneRow(block, queries[r], scratch.scores, kNan, scores, values);
  }
}

void AnyRows(const Block& block, const Query* queries, int64_t count, float* memory) {
  if (count <= kLanes) return RowsOf<1>(block, queries, count, memory);
  if (count <= 2 * kLanes) return RowsOf<2>(block, queries, count, memory);
  RowsOf<3>(block, queries, count, memory);
}

int64_t ScratchFloats(int64_t depth, int64_t width) {
  return Scratch(nullptr, depth, width).end - static_cast<float*>(nullptr);
}

[[maybe_unused]] Kernels Get(const char* name) {
  return {name, kLanes, kMostVectors, 0, ScratchFloats, AnyRows, Few};
}

}  // namespace
}  // namespace mxplan::attention
