// The kernels of onednn/few_bits/kernels.h over vectors of MXPLAN_LANES floats; included once for
// each instruction set.  Everything but `Get` is in an unnamed namespace.
#include "onednn/few_bits/kernels.h"
#include "onednn/post_ops/finish_impl.h"
#include "onednn/vectors/tile_impl.h"

namespace mxplan::few_bits {
namespace {

constexpr int64_t kVectors = kGroup / kLanes;  // of a group
// Tiles: vectors of columns, rows at once, numbers of the depth at once.  Their sums fill the
// registers but for the vectors of a tile.
constexpr int64_t kTileGroups = kLanes == 16 ? 2 : 1;
constexpr int64_t kTileVectors = kTileGroups * kVectors;
constexpr int64_t kTile = kTileGroups * kGroup;
constexpr int kMostRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 2;
constexpr int64_t kDepth = 192;
// Rows that share unpacked numbers, and tiles that share rows while these are in cache.
constexpr int64_t kBlocksOfPass = 288 / kMostRows, kRowsOfPass = kBlocksOfPass * kMostRows;
constexpr int64_t kTogether = 128 / kTile, kFewBlocks = 8;
static_assert(kDepth % kWordBits == 0, "whole words of any number of bits");

using Bytes = uint8_t __attribute__((vector_size(MXPLAN_LANES)));

// Numbers of kBits as they come out of words, those around 0 where `kZero` is the middle.
template <int kBits, Zero kZero>
struct Numbers {
  static constexpr int64_t kOfWord = kWordBits / kBits;
  static constexpr int32_t kMiddle = kZero == Zero::kMiddle ? 1 << (kBits - 1) : 0;

#if MXPLAN_LANES == 16
  // A permutation picks by the lowest four bits of each lane: no mask, no conversion.
  Vec table;
  Numbers() {
    for (int32_t i = 0; i < 16; ++i) {
      table[i] = static_cast<float>((kBits < 4 ? i & ((1 << kBits) - 1) : i) - kMiddle);
    }
  }
#endif

  MXPLAN_INLINE Vec At(Ints words, int64_t number) const {
    const Ints shifted = words >> static_cast<int32_t>(kBits * number);
#if MXPLAN_LANES == 16
    if constexpr (kBits <= 4) return __builtin_shuffle(table, shifted);
#endif
    return __builtin_convertvector((shifted & ((1 << kBits) - 1)) - kMiddle, Vec);
  }
};

template <Zero kZero>
MXPLAN_INLINE Vec ZeroPoint(const Product& p, int64_t at) {
  if constexpr (kZero == Zero::kReals) return Load(static_cast<const float*>(p.zero_points) + at);
  if constexpr (kZero == Zero::kBytes) {
    Bytes bytes;
    __builtin_memcpy(&bytes, static_cast<const uint8_t*>(p.zero_points) + at, sizeof(bytes));
    return __builtin_convertvector(bytes, Vec);
  }
  return Vec{};
}

// --- few rows ------------------------------------------------------------------------------------

// The products of one word's first `count` numbers, of all vectors of a group.
template <int kBits, Zero kZero, int kRows, int kParts>
MXPLAN_INLINE void OfWord(const Numbers<kBits, kZero>& numbers, const Product& p, const Ints* words,
                          const Vec* zero, const float* src, int64_t count,
                          Vec (*parts)[kVectors][kParts]) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      Vec number = numbers.At(words[v], i);
      if constexpr (kZero != Zero::kMiddle) number -= zero[v];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        parts[r][v][i % kParts] += number * Broadcast(src[r * p.depth + i]);
      }
    }
  }
}

template <int kBits, Zero kZero, int kRows>
void FewRows(const Product& p, int64_t begin, int64_t end) {
  // Sums that do not wait for each other, as many as there are registers for.
  constexpr int kParts = kLanes == 16 ? (kRows == 1 ? 4 : 2) : kLanes == 8 && kRows <= 2 ? 2 : 1;
  constexpr int64_t kOfWord = Numbers<kBits, kZero>::kOfWord;
  const Numbers<kBits, kZero> numbers;
  for (int64_t group = begin; group < end; ++group) {
    const int32_t* words = p.words + group * p.words_of_column * kGroup;
    Vec sums[kRows][kVectors] = {};
    for (int64_t block = 0; block < p.blocks; ++block) {
      const int64_t scales = (group * p.blocks + block) * kGroup;
      Vec zero[kVectors];
      for (int64_t v = 0; v < kVectors; ++v) zero[v] = ZeroPoint<kZero>(p, scales + v * kLanes);
      Vec parts[kRows][kVectors][kParts] = {};
      const int64_t last = Least((block + 1) * p.block, p.depth);
      for (int64_t k = block * p.block; k < last; k += kOfWord, words += kGroup) {
        Ints read[kVectors];
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v) read[v] = LoadWords(words + v * kLanes);
        if (last - k >= kOfWord) {
          OfWord<kBits, kZero, kRows>(numbers, p, read, zero, p.src + k, kOfWord, parts);
        } else {
          OfWord<kBits, kZero, kRows>(numbers, p, read, zero, p.src + k, last - k, parts);
        }
      }
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vec scale = Load(p.scales + scales + v * kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          Vec sum = parts[r][v][0];
          for (int i = 1; i < kParts; ++i) sum += parts[r][v][i];
          sums[r][v] += scale * sum;
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int64_t v = 0; v < kVectors; ++v) {
        Finish(p, r, group * kGroup + v * kLanes, sums[r][v]);
      }
    }
  }
}

template <int kBits, Zero kZero>
void Few(const Product& p, int64_t begin, int64_t end) {
  switch (p.rows) {
    case 1:
      return FewRows<kBits, kZero, 1>(p, begin, end);
    case 2:
      return FewRows<kBits, kZero, 2>(p, begin, end);
    case 3:
      return FewRows<kBits, kZero, 3>(p, begin, end);
    default:
      return FewRows<kBits, kZero, kFewRows>(p, begin, end);
  }
}

// --- many rows -----------------------------------------------------------------------------------

void Pack(const float* src, int64_t depth, const RowBlocks& blocks, int64_t begin, int64_t end,
          float* packed) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = blocks.Begin(block), height = blocks.Begin(block + 1) - first;
    float* to = packed + first * depth;
    for (int64_t r = 0; r < height; ++r) {
      const float* from = src + (first + r) * depth;
      for (int64_t k = 0; k < depth; ++k) to[k * height + r] = from[k];
    }
  }
}

// Numbers [first, last) of the depth of one group as real numbers, into tile [depth, kTile].
template <int kBits, Zero kZero>
void Unpack(const Numbers<kBits, kZero>& numbers, const Product& p, int64_t group, int64_t first,
            int64_t last, float* tile) {
  constexpr int64_t kOfWord = Numbers<kBits, kZero>::kOfWord;
  const int32_t* words = p.words + (group * p.words_of_column + first / kOfWord) * kGroup;
  for (int64_t k = first; k < last;) {
    const int64_t block = k / p.block, until = Least((block + 1) * p.block, last);
    const int64_t scales = (group * p.blocks + block) * kGroup;
    Vec scale[kVectors], zero[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) {
      scale[v] = Load(p.scales + scales + v * kLanes);
      zero[v] = ZeroPoint<kZero>(p, scales + v * kLanes);
    }
    for (; k < until; words += kGroup) {
      const int64_t count = Least(kOfWord, until - k);
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        const Ints read = LoadWords(words + v * kLanes);
        auto put = [&](int64_t i) __attribute__((always_inline)) {
          Vec number = numbers.At(read, i);
          if constexpr (kZero != Zero::kMiddle) number -= zero[v];
          Store(tile + i * kTile + v * kLanes, number * scale[v]);
        };
        if (count == kOfWord) {
#pragma GCC unroll 16
          for (int64_t i = 0; i < kOfWord; ++i) put(i);
        } else {
          for (int64_t i = 0; i < count; ++i) put(i);
        }
      }
      k += count;
      tile += count * kTile;
    }
  }
}

// sums [kRows, kTile] += src [depth, kRows] . tile [depth, kTile]
template <int kRows>
void RowsTimesTile(const float* src, const float* tile, int64_t depth, bool first, float* sums) {
  const TileSteps steps = {1, kRows, kTile, kLanes, kTile};
  AddToTile<kRows, kTileVectors>(src, tile, steps, depth, first, sums);
}

using TileFunction = void (*)(const float* src, const float* tile, int64_t depth, bool first,
                              float* sums);

template <int... kRows>
MXPLAN_INLINE TileFunction TileOf(int64_t rows, std::integer_sequence<int, kRows...>) {
  constexpr TileFunction kFunctions[] = {RowsTimesTile<kRows + 1>...};
  return kFunctions[rows - 1];
}

// Numbers of the depth from `first` on of some tiles, [tiles, kDepth, kTile].
template <int kBits, Zero kZero>
void UnpackTiles(const Numbers<kBits, kZero>& numbers, const Product& p, int64_t tile,
                 int64_t tiles, int64_t first, float* unpacked) {
  const int64_t groups = (p.columns + kGroup - 1) / kGroup;
  for (int64_t g = 0; g < tiles * kTileGroups; ++g) {
    // The last tile may lack a group, whose sums nobody reads.
    const int64_t group = Least(tile * kTileGroups + g, groups - 1);
    float* to = unpacked + g / kTileGroups * kDepth * kTile + g % kTileGroups * kGroup;
    Unpack<kBits, kZero>(numbers, p, group, first, Least(first + kDepth, p.depth), to);
  }
}

// Adds to the sums [tiles, kRowsOfPass, kTile] of blocks [begin, end) of rows.
inline void Pass(const Product& p, const RowBlocks& blocks, int64_t begin, int64_t end,
                 int64_t first, int64_t tiles, const float* unpacked, float* sums) {
  const int64_t depth = Least(kDepth, p.depth - first);
  for (int64_t block = begin; block < end; ++block) {
    const int64_t row = blocks.Begin(block), height = blocks.Begin(block + 1) - row;
    const float* src = p.src + row * p.depth + first * height;
    const TileFunction run = TileOf(height, std::make_integer_sequence<int, kMostRows>());
    for (int64_t t = 0; t < tiles; ++t) {
      float* to = sums + (t * kRowsOfPass + row - blocks.Begin(begin)) * kTile;
      run(src, unpacked + t * kDepth * kTile, depth, first == 0, to);
    }
  }
}

template <int kBits, Zero kZero>
void Many(const Product& p, const RowBlocks& blocks, int64_t begin, int64_t end, float* scratch) {
  const Numbers<kBits, kZero> numbers;
  float *unpacked = scratch, *sums = scratch + kTogether * kDepth * kTile;
  // One tile stays in the nearest cache, which pays where few rows read it.
  const int64_t together = blocks.count < kFewBlocks ? 1 : kTogether;
  for (int64_t tile = begin; tile < end; tile += together) {
    const int64_t tiles = Least(together, end - tile);
    for (int64_t block = 0; block < blocks.count; block += kBlocksOfPass) {
      const int64_t last = Least(block + kBlocksOfPass, blocks.count);
      for (int64_t first = 0; first < p.depth; first += kDepth) {
        UnpackTiles<kBits, kZero>(numbers, p, tile, tiles, first, unpacked);
        Pass(p, blocks, block, last, first, tiles, unpacked, sums);
      }
      const int64_t top = blocks.Begin(block), bottom = blocks.Begin(last);
      for (int64_t row = top; row < bottom; ++row) {
        for (int64_t v = 0; v < tiles * kTileVectors; ++v) {
          const int64_t of_tile = v / kTileVectors * kRowsOfPass + row - top;
          const Vec sum = Load(sums + of_tile * kTile + v % kTileVectors * kLanes);
          Finish(p, row, tile * kTile + v * kLanes, sum);
        }
      }
    }
  }
}

// --- by the numbers' bits and zero points --------------------------------------------------------

template <int kBits, typename Run>
MXPLAN_INLINE void ForZero(const Product& p, Run run) {
  using Bits = std::integral_constant<int, kBits>;
  switch (p.zero) {
    case Zero::kMiddle:
      return run(Bits{}, std::integral_constant<Zero, Zero::kMiddle>{});
    case Zero::kBytes:
      return run(Bits{}, std::integral_constant<Zero, Zero::kBytes>{});
    case Zero::kReals:
      return run(Bits{}, std::integral_constant<Zero, Zero::kReals>{});
  }
}

template <typename Run>
MXPLAN_INLINE void ForBits(const Product& p, Run run) {
  if (p.bits == 2) return ForZero<2>(p, run);
  if (p.bits == 4) return ForZero<4>(p, run);
  return ForZero<8>(p, run);
}

void AnyFew(const Product& p, int64_t begin, int64_t end) {
  ForBits(p, [&](auto bits, auto zero) {
    Few<decltype(bits)::value, decltype(zero)::value>(p, begin, end);
  });
}

void AnyMany(const Product& p, const RowBlocks& blocks, int64_t begin, int64_t end,
             float* scratch) {
  ForBits(p, [&](auto bits, auto zero) {
    Many<decltype(bits)::value, decltype(zero)::value>(p, blocks, begin, end, scratch);
  });
}

Kernels Get(const char* name) {
  constexpr int64_t kScratch = kTogether * (kDepth + kRowsOfPass) * kTile;
  return {name, kTileGroups, kMostRows, kScratch, AnyFew, Pack, AnyMany};
}

}  // namespace
}  // namespace mxplan::few_bits
