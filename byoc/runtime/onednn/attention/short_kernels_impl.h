// Attention on bfloat16: products of pairs, a softmax in float32 between them; included once for
// each instruction set behind kernels_impl.h.
//
//   words   [depth / 2][rows]    two neighbours of a query; of a key they are read where they stand
//   scores  [keys][rows]         float32, as in kernels_impl.h
//   weights [keys / 2][rows]     two neighbouring keys' weights, rounded
//   pairs   [keys / 2][width]    two neighbouring keys' values
//
// Sums are float32, over all keys: results are rounded once.
#include <algorithm>
#include <cstring>

#include "onednn/attention/kernels.h"
#include "onednn/attention/pairs.h"

namespace mxplan::attention {
namespace {

using ShortQuery = QueryOfNumbers<Short>;
using ShortBlock = BlockOfNumbers<Short>;

constexpr Short kShortNan = 0x7fc0;

// Scratch of a call.
struct ShortScratch {
  ShortScratch(float* from, int64_t depth, int64_t width) : scores(from) {
    masks = scores + kKeysAtOnce * kMostRows;
    sums = masks + kKeysAtOnce * kMostRows;
    words = reinterpret_cast<int32_t*>(sums + RoundUp(width) * kMostRows);
    pairs = words + RoundUp(Pairs(depth)) * kMostRows;
    end = reinterpret_cast<float*>(pairs + Pairs(kKeysAtOnce) * RoundUp(width));
  }
  float* scores;   // [keys][rows]; then weights, [keys / 2][rows]
  float* masks;    // [keys][rows]
  float* sums;     // [rows][width up to whole vectors], of the keys before
  int32_t* words;  // [depth / 2][rows]
  int32_t* pairs;  // [keys / 2][width up to whole vectors]
  float* end;
};

// words[i][row]: the pairs of kQ vectors of queries.
template <int64_t kQ, typename At>
void CopyPairs(const At& at, int64_t depth, int32_t* words) {
  constexpr int64_t kRows = kQ * kLanes;
  const int64_t whole = depth / kPair;
  for (int64_t j = 0; j < kQ; ++j) {
    const Short* rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = at(j * kLanes + i).data;
    int64_t d = 0;
    for (; d + kLanes <= whole; d += kLanes) {
      Vec v[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) std::memcpy(&v[i], rows[i] + kPair * d, sizeof(Vec));
      Transpose(v);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        StoreWords(words + (d + i) * kRows + j * kLanes, reinterpret_cast<Words>(v[i]));
      }
    }
    for (; d < Pairs(depth); ++d) {
      for (int64_t i = 0; i < kLanes; ++i) {
        const Short* from = rows[i] + kPair * d;
        words[d * kRows + j * kLanes + i] = d < whole ? PairAt{}(from) : LastAt{}(from);
      }
    }
  }
}

// scores[i][rows] of kK keys.
template <int64_t kQ, int64_t kK>
MXPLAN_INLINE void ShortScoresOf(const int32_t* words, const Short* key, int64_t stride,
                                 int64_t depth, float scale, float* scores) {
  constexpr int64_t kRows = kQ * kLanes;
  Vec sums[kK][kQ] = {};
  auto add = [&](int64_t d, auto read) __attribute__((always_inline)) {
    Words q[kQ];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kQ; ++j) q[j] = LoadWords(words + d * kRows + j * kLanes);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kK; ++i) {
      Words k = AllWords(read(key + i * stride + kPair * d));
#pragma GCC unroll 4
      for (int64_t j = 0; j < kQ; ++j) sums[i][j] = Add(sums[i][j], q[j], k);
    }
  };
  for (int64_t d = 0; d < depth / kPair; ++d) add(d, PairAt{});
  if (depth % kPair != 0) add(depth / kPair, LastAt{});
#pragma GCC unroll 16
  for (int64_t i = 0; i < kK; ++i) {
#pragma GCC unroll 4
    for (int64_t j = 0; j < kQ; ++j) Store(scores + i * kRows + j * kLanes, sums[i][j] * scale);
  }
}

template <int64_t kQ>
void ShortScores(const int32_t* words, const Short* key, int64_t stride, int64_t depth,
                 int64_t keys, float scale, float* scores) {
  constexpr int64_t kRows = kQ * kLanes, kK = MXPLAN_KEYS / kQ, kFew = kK > 4 ? 4 : 2;
  int64_t k = 0;
  for (; k + kK <= keys; k += kK) {
    ShortScoresOf<kQ, kK>(words, key + k * stride, stride, depth, scale, scores + k * kRows);
  }
  for (; k + kFew <= keys; k += kFew) {
    ShortScoresOf<kQ, kFew>(words, key + k * stride, stride, depth, scale, scores + k * kRows);
  }
  for (; k < keys; ++k) {
    ShortScoresOf<kQ, 1>(words, key + k * stride, stride, depth, scale, scores + k * kRows);
  }
}

constexpr float kLog2e = 1.44269504F;

// 2 to a power: within 3e-6 of itself, a thousandth of what a rounding to bfloat16 is off, where
// Exp is within 1e-7.  0 of -inf, NaN of NaN.  That of a fraction is a polynomial with the least
// largest relative error that is 1 at 0.
MXPLAN_INLINE Vec PowerOfTwo(Vec power) {
#ifdef MXPLAN_BF16_INSTRUCTIONS
  // Of -inf the fraction is 0; what scalef multiplies with is 2 to the whole number below.
  constexpr __mmask16 kEveryLane = 0xffff;
  constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  auto exact = reinterpret_cast<__m512>(power);
  auto r = reinterpret_cast<Vec>(_mm512_maskz_reduce_ps(kEveryLane, exact, kDown));
  Vec p = r * 1.342669e-2F + 5.224247e-2F;
  p = p * r + 2.4128021e-1F;
  p = p * r + 6.9304484e-1F;
  p = p * r + 1.0F;
  return reinterpret_cast<Vec>(
      _mm512_maskz_scalef_ps(kEveryLane, reinterpret_cast<__m512>(p), exact));
#else
  constexpr float kLeast = -200.0F;                    // 2 to it is 0
  constexpr float kRound = 12582912.0F;                // 1.5 * 2^23: a sum with it has no fraction
  power = kLeast > power ? Broadcast(kLeast) : power;  // NaN stays
  Vec whole = power + kRound - kRound;
  Vec r = power - whole;
  Vec p = r * 9.58258e-3F + 5.590683e-2F;
  p = p * r + 2.4024107e-1F;
  p = p * r + 6.9312412e-1F;
  p = p * r + 1.0F;
  Ints bits = (__builtin_convertvector(whole, Ints) + 127) << 23;
  Vec result = p * reinterpret_cast<Vec>(bits);
  result = whole < -126.0F ? Vec{} : result;
  return power == power ? result : power;
#endif
}

// Likewise e to the power of `score - largest`, of which each may be a mask's least number, that
// times log2(e) would be infinite.
MXPLAN_INLINE Vec RoughExp(Vec score, Vec largest) {
  return PowerOfTwo((score - largest) * kLog2e);
}

// Scores [keys][rows] become pairs of weights, [keys / 2][rows], in their own place.
template <int64_t kQ>
struct PairedWeights {
  MXPLAN_INLINE void operator()(float* scores, int64_t keys, const Vec* base, Vec* sum) const {
    auto* pairs = reinterpret_cast<int32_t*>(scores);
    for (int64_t k = 0; k < keys; k += kPair) {
      for (int64_t j = 0; j < kQ; ++j) {
        const float* at = scores + (k * kQ + j) * kLanes;
        Vec low = RoughExp(Load(at), base[j]), high{};
        if (k + 1 < keys) high = RoughExp(Load(at + kQ * kLanes), base[j]);
        sum[j] += low + high;
        StoreWords(pairs + (k / kPair * kQ + j) * kLanes, Paired(low, high));
      }
    }
  }
};

// Values of keys from `begin` on, two by two.
void CopyValues(const ShortBlock& block, int64_t begin, int64_t keys, int32_t* pairs) {
  const int64_t row = RoundUp(block.width);
  for (int64_t k = 0; k < keys; k += kPair) {
    const Short* low = block.value.data + (begin + k) * block.value.stride;
    for (int64_t c = 0; c < row; c += kLanes) {
      Words words = LoadShort(low + c, block.width - c);
      if (k + 1 < keys) words |= LoadShort(low + block.value.stride + c, block.width - c) << kHalf;
      StoreWords(pairs + k / kPair * row + c, words);
    }
  }
}

// The place of results, and the use of those before.
struct ShortResults {
  const ShortQuery* queries;
  float* sums;           // [rows][width up to whole vectors]
  const float* factors;  // of the sums that stand there, by rows; null where none do
  const float* inverse;  // factors of the whole, by rows; null before the last block of keys
};

MXPLAN_INLINE void Keep(const ShortResults& results, int64_t row, int64_t column, int64_t columns,
                        Vec sum) {
  float* sums = results.sums + row * RoundUp(columns) + column;
  if (results.factors) sum += Load(sums) * results.factors[row];
  if (!results.inverse) return Store(sums, sum);
  float inverse = results.inverse[row];
  Short* dst = results.queries[row].dst + column;
  StoreShort(dst, columns - column, inverse == 0 ? Vec{} : sum * inverse);
}

// MXPLAN_ROWS rows from `row` on, kV vectors from `column` on.
template <int64_t kV>
MXPLAN_INLINE void ShortValuesOf(const int32_t* weights, int64_t along, const int32_t* pairs,
                                 int64_t keys, int64_t row, int64_t rows, int64_t column,
                                 int64_t columns, const ShortResults& results) {
  Vec sums[MXPLAN_ROWS][kV] = {};
  for (int64_t k = 0; k < Pairs(keys); ++k) {
    Words v[kV];
#pragma GCC unroll 4
    for (int64_t j = 0; j < kV; ++j) {
      v[j] = LoadWords(pairs + k * RoundUp(columns) + column + j * kLanes);
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < MXPLAN_ROWS; ++i) {
      Words p = AllWords(weights[k * along + row + i]);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kV; ++j) sums[i][j] = Add(sums[i][j], v[j], p);
    }
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < MXPLAN_ROWS; ++i) {
    if (row + i >= rows) break;
#pragma GCC unroll 4
    for (int64_t j = 0; j < kV; ++j) {
      Keep(results, row + i, column + j * kLanes, columns, sums[i][j]);
    }
  }
}

void ShortValues(const int32_t* weights, int64_t along, const int32_t* pairs, int64_t keys,
                 int64_t rows, int64_t columns, const ShortResults& results) {
  constexpr int64_t kV = MXPLAN_VALUES;
  for (int64_t row = 0; row < rows; row += MXPLAN_ROWS) {
    int64_t column = 0;
    for (; column + (kV - 1) * kLanes < columns; column += kV * kLanes) {
      ShortValuesOf<kV>(weights, along, pairs, keys, row, rows, column, columns, results);
    }
    for (; column < columns; column += kLanes) {
      ShortValuesOf<1>(weights, along, pairs, keys, row, rows, column, columns, results);
    }
  }
}

template <int64_t kQ>
void ShortRowsOf(const ShortBlock& block, const ShortQuery* queries, int64_t count, float* memory) {
  constexpr int64_t kRows = kQ * kLanes;
  Range range = Seen(block, queries, count);
  if (range.begin >= range.end) return Dead(block, queries, count, kShortNan);
  ShortScratch scratch(memory, block.depth, block.width);
  auto at = [&](int64_t row) -> const ShortQuery& { return queries[std::min(row, count - 1)]; };
  CopyPairs<kQ>(at, block.depth, scratch.words);
  Running<kQ> running;
  int64_t all_visible = Begin(at, block.keys, &running);
  for (int64_t begin = range.begin; begin < range.end; begin += kKeysAtOnce) {
    int64_t keys = std::min(kKeysAtOnce, range.end - begin);
    bool first = begin == range.begin, last = begin + keys == range.end;
    ShortScores<kQ>(scratch.words, block.key.data + begin * block.key.stride, block.key.stride,
                    block.depth, keys, block.scale, scratch.scores);
    if (block.masked && !block.one_mask) CopyMasks<kQ>(block, at, begin, keys, scratch.masks);
    Weights<kQ>(block, queries, begin, keys, first, all_visible, scratch.masks, scratch.scores,
                &running, PairedWeights<kQ>());
    float factors[kRows], inverse[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      factors[r] = running.factor[r / kLanes][r % kLanes];
      inverse[r] = last ? Inverse(block, running.sum[r / kLanes][r % kLanes]) : 1.0F;
    }
    CopyValues(block, begin, keys, scratch.pairs);
    ShortValues(reinterpret_cast<int32_t*>(scratch.scores), kRows, scratch.pairs, keys, count,
                block.width,
                {queries, scratch.sums, first ? nullptr : factors, last ? inverse : nullptr});
  }
}

// A score for each of kLanes keys, and the last one's again for those beyond `keys`.
MXPLAN_INLINE Vec ShortScoresOfRow(const Short* query, const Short* key, int64_t stride,
                                   int64_t depth, int64_t keys) {
  const Short* from[kLanes];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) from[i] = key + std::min(i, keys - 1) * stride;
  Vec sums[kLanes] = {};
  for (int64_t d = 0; d < depth; d += kPair * kLanes) {
    Words q = LoadPairs(query + d, depth - d);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) {
      sums[i] = Add(sums[i], q, LoadPairs(from[i] + d, depth - d));
    }
  }
  return Sums(sums);
}

// One row's values: weights are not rounded, since each value is read once anyway.
void ShortValuesOfRow(const ShortBlock& block, const float* weights, int64_t begin, int64_t keys,
                      const ShortResults& results) {
  const Short* value = block.value.data + begin * block.value.stride;
  for (int64_t column = 0; column < block.width; column += kLanes) {
    Vec sums[2] = {};
    for (int64_t k = 0; k < keys; ++k) {
      const Short* at = value + k * block.value.stride + column;
      sums[k % 2] += First(LoadShort(at, block.width - column)) * weights[k];
    }
    Keep(results, 0, column, block.width, sums[0] + sums[1]);
  }
}

void ShortFew(const ShortBlock& block, const ShortQuery* queries, int64_t count, float* memory) {
  ShortScratch scratch(memory, block.depth, block.width);
  auto scores = [&](const ShortQuery& query, int64_t key, int64_t left) {
    const Short* from = block.key.data + key * block.key.stride;
    return ShortScoresOfRow(query.data, from, block.key.stride, block.depth, left);
  };
  auto values = [&](const ShortQuery& query, int64_t begin, int64_t keys, const float* factor,
                    const float* inverse) {
    ShortValuesOfRow(block, scratch.scores, begin, keys, {&query, scratch.sums, factor, inverse});
  };
  for (int64_t r = 0; r < count; ++r) {
    OneRow(block, queries[r], scratch.scores, kShortNan, scores, values);
  }
}

void AnyShortRows(const ShortBlock& block, const ShortQuery* queries, int64_t count,
                  float* memory) {
  if (count <= kLanes) return ShortRowsOf<1>(block, queries, count, memory);
  if (count <= 2 * kLanes) return ShortRowsOf<2>(block, queries, count, memory);
  ShortRowsOf<3>(block, queries, count, memory);
}

int64_t ShortScratchFloats(int64_t depth, int64_t width) {
  return ShortScratch(nullptr, depth, width).end - static_cast<float*>(nullptr);
}

[[maybe_unused]] ShortKernels GetShort(const char* name) {
  return {name, kLanes, kMostVectors, 0, ShortScratchFloats, AnyShortRows, ShortFew};
}

}  // namespace
}  // namespace mxplan::attention
