// The kernels for vectors of MXPLAN_LANES numbers; included once for each instruction set, by a
// file that names it.  Everything is in an unnamed namespace.
#include "onednn/conversion/kernels.h"
#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/shorts_impl.h"

namespace mxplan::conversion {
namespace {

// Of the kernels of an instruction set.
struct Names {
  const char* conversion;
  const char* turn;
};

constexpr int64_t kBits = 8;      // of an integer
constexpr int64_t kTogether = 4;  // integers of a word
using Quarter = uint8_t __attribute__((vector_size(16)));
using Word = int32_t;

template <Number kNumber>
struct Type;
template <>
struct Type<Number::kFloat> {
  using Item = float;
};
template <>
struct Type<Number::kShort> {
  using Item = Short;
};
template <>
struct Type<Number::kUnsigned> {
  using Item = uint8_t;
  using Vector = uint8_t __attribute__((vector_size(MXPLAN_LANES)));
  using Wider = uint16_t __attribute__((vector_size(2 * MXPLAN_LANES)));
  static constexpr int32_t kLeast = 0, kLargest = 255;
};
template <>
struct Type<Number::kSigned> {
  using Item = int8_t;
  using Vector = int8_t __attribute__((vector_size(MXPLAN_LANES)));
  using Wider = int16_t __attribute__((vector_size(2 * MXPLAN_LANES)));
  static constexpr int32_t kLeast = -128, kLargest = 127;
};
template <Number kNumber>
using Item = typename Type<kNumber>::Item;

// --- reading and writing a vector ---------------------------------------------------------------

template <Number kFrom>
MXPLAN_INLINE Vec Real(const Item<kFrom>* from, const Scales& scales) {
  if constexpr (kFrom == Number::kFloat) {
    return Load(from);
  } else if constexpr (kFrom == Number::kShort) {
    return Widened(LoadShort(from, kLanes));
  } else {
    typename Type<kFrom>::Vector integers;
    std::memcpy(&integers, from, sizeof(integers));
    // By way of 16 bits: GCC takes one element after the other where it widens by four.
    const auto wider = __builtin_convertvector(integers, typename Type<kFrom>::Wider);
    const Ints steps = __builtin_convertvector(wider, Ints) - scales.src_zero;
    return __builtin_convertvector(steps, Vec) * scales.src;
  }
}

// A sum with 1.5 * 2^23 has no fraction, which rounds to the nearest, a tie to the even one.
constexpr float kRound = 12582912.0F;
constexpr int32_t kRoundBits = 0x4B400000;

// Integers of a type, one in each word.
template <Number kTo>
MXPLAN_INLINE Ints Integers(Vec real, const Scales& scales) {
  const auto least = static_cast<float>(Type<kTo>::kLeast - scales.dst_zero);
  const auto largest = static_cast<float>(Type<kTo>::kLargest - scales.dst_zero);
  Vec steps = real / scales.dst;
  steps = steps > least ? steps : Broadcast(least);  // what is no number, too
  steps = steps < largest ? steps : Broadcast(largest);
  const Vec shifted = steps + kRound;
  return reinterpret_cast<Ints>(shifted) - kRoundBits + scales.dst_zero;
}

template <Number kTo>
MXPLAN_INLINE void StoreReal(Item<kTo>* to, Vec real, const Scales& scales) {
  if constexpr (kTo == Number::kFloat) {
    Store(to, real);
  } else if constexpr (kTo == Number::kShort) {
    StoreShort(to, kLanes, real);
  } else {
    using Bytes = typename Type<kTo>::Vector;
    const auto bytes = __builtin_convertvector(Integers<kTo>(real, scales), Bytes);
    std::memcpy(to, &bytes, sizeof(bytes));
  }
}

// Numbers behind the last whole vector, by way of one.
template <Number kFrom, Number kTo>
MXPLAN_INLINE void Few(const Item<kFrom>* from, int64_t count, const Scales& scales,
                       Item<kTo>* to) {
  Item<kFrom> there[kLanes] = {};
  Item<kTo> converted[kLanes];
  std::memcpy(there, from, static_cast<size_t>(count) * sizeof(*from));
  StoreReal<kTo>(converted, Real<kFrom>(there, scales), scales);
  std::memcpy(to, converted, static_cast<size_t>(count) * sizeof(*to));
}

template <Number kFrom, Number kTo>
void ConvertFlat(const void* from, int64_t count, const Scales& scales, void* to) {
  const auto* src = static_cast<const Item<kFrom>*>(from);
  auto* dst = static_cast<Item<kTo>*>(to);
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    StoreReal<kTo>(dst + at, Real<kFrom>(src + at, scales), scales);
  }
  if (at < count) Few<kFrom, kTo>(src + at, count - at, scales, dst + at);
}

// --- rows become columns ------------------------------------------------------------------------

// Words of up to four integers each: those of rows from `row` on, of kLanes columns.
template <Number kFrom, Number kTo>
MXPLAN_INLINE Ints Words(const Item<kFrom>* from, const Turn& turn, int64_t row, int64_t rows,
                         const Scales& scales) {
  Ints words{};
  for (int64_t r = 0; r < rows; ++r) {
    const Vec real = Real<kFrom>(from + (row + r) * turn.from_row, scales);
    words |= (Integers<kTo>(real, scales) & 0xff) << static_cast<int32_t>(kBits * r);
  }
  return words;
}

// Writes the first three bytes of each word, without gaps; four bytes more are written, too.
MXPLAN_INLINE void StoreTriples(Ints words, uint8_t* to) {
  constexpr Quarter kOrder = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15};
  constexpr int64_t kPixels = sizeof(Quarter) / sizeof(Word);
  Quarter quarters[kLanes / kPixels];
  std::memcpy(quarters, &words, sizeof(words));
#pragma GCC unroll 4
  for (int64_t i = 0; i < kLanes / kPixels; ++i) {
    const Quarter packed = __builtin_shuffle(quarters[i], kOrder);
    std::memcpy(to + 3 * kPixels * i, &packed, sizeof(packed));
  }
}

template <Number kFrom, Number kTo>
void TurnIntoIntegers(const void* from, const Turn& turn, const Scales& scales, void* to) {
  const auto* src = static_cast<const Item<kFrom>*>(from);
  auto* dst = static_cast<uint8_t*>(to);
  const bool triples = turn.rows == 3 && turn.to_row == 3;  // an image's colours
  for (int64_t column = 0; column < turn.columns; column += kLanes) {
    const int64_t columns = std::min(kLanes, turn.columns - column);
    for (int64_t row = 0; row < turn.rows; row += kTogether) {
      const int64_t rows = std::min(kTogether, turn.rows - row);
      Ints words;
      if (columns == kLanes) {
        words = Words<kFrom, kTo>(src + column, turn, row, rows, scales);
      } else {
        Item<kFrom> there[kTogether * kLanes] = {};
        for (int64_t r = 0; r < rows; ++r) {
          std::memcpy(there + r * kLanes, src + (row + r) * turn.from_row + column,
                      static_cast<size_t>(columns) * sizeof(*there));
        }
        words = Words<kFrom, kTo>(there, {rows, kLanes, kLanes, 0}, 0, rows, scales);
      }
      if (triples && column + kLanes + 2 <= turn.columns) {
        StoreTriples(words, dst + 3 * column);
        continue;
      }
      Word apart[kLanes];
      std::memcpy(apart, &words, sizeof(words));
      uint8_t* pixel = dst + column * turn.to_row + row;
      for (int64_t c = 0; c < columns; ++c, pixel += turn.to_row) {
        if (rows == kTogether) {
          std::memcpy(pixel, apart + c, kTogether);
        } else {
          std::memcpy(pixel, apart + c, static_cast<size_t>(rows));
        }
      }
    }
  }
}

// --- rows become columns of real numbers --------------------------------------------------------

// Numbers of three rows in turns: lane i of part p is number p * kLanes + i of that order.
template <int64_t kPart, int64_t... kLane>
MXPLAN_INLINE Vec InTurns(Vec a, Vec b, Vec c, std::integer_sequence<int64_t, kLane...>) {
  constexpr int64_t kFirst = kPart * kLanes;
  const Vec two = __builtin_shufflevector(
      a, b, ((kFirst + kLane) / 3 + ((kFirst + kLane) % 3 == 1 ? kLanes : 0))...);
  return __builtin_shufflevector(
      two, c, ((kFirst + kLane) % 3 == 2 ? kLanes + (kFirst + kLane) / 3 : kLane)...);
}

// Three rows of kLanes columns, as an image's colours are, into pixels without gaps.
template <Number kFrom, Number kTo>
MXPLAN_INLINE void TurnThree(const Item<kFrom>* from, const Turn& turn, const Scales& scales,
                             Item<kTo>* to) {
  constexpr auto kAll = std::make_integer_sequence<int64_t, kLanes>();
  const Vec a = Real<kFrom>(from, scales), b = Real<kFrom>(from + turn.from_row, scales);
  const Vec c = Real<kFrom>(from + 2 * turn.from_row, scales);
  StoreReal<kTo>(to, InTurns<0>(a, b, c, kAll), scales);
  StoreReal<kTo>(to + kLanes, InTurns<1>(a, b, c, kAll), scales);
  StoreReal<kTo>(to + 2 * kLanes, InTurns<2>(a, b, c, kAll), scales);
}

// The first `count` items, at least kItems, by the first and the last kItems of them.
template <int64_t kItems, typename Item>
MXPLAN_INLINE void StoreEnds(Item* to, const Item* items, int64_t count) {
  std::memcpy(to, items, kItems * sizeof(Item));
  std::memcpy(to + count - kItems, items + count - kItems, kItems * sizeof(Item));
}

template <Number kTo>
MXPLAN_INLINE void StoreFirst(Item<kTo>* to, Vec vec, int64_t count, const Scales& scales) {
  Item<kTo> items[kLanes];
  StoreReal<kTo>(items, vec, scales);
  if constexpr (kLanes > 8) {
    if (count >= 8) return StoreEnds<8>(to, items, count);
  }
  if constexpr (kLanes > 4) {
    if (count >= 4) return StoreEnds<4>(to, items, count);
  }
  if (count >= 2) return StoreEnds<2>(to, items, count);
  to[0] = items[0];
}

// A tile of kLanes columns and `rows` rows, kLanes at most.
template <Number kFrom, Number kTo, bool kWhole>
MXPLAN_INLINE void TurnTile(const Item<kFrom>* from, const Turn& turn, int64_t rows,
                            const Scales& scales, Item<kTo>* to) {
  Vec vectors[kLanes] = {};
#pragma GCC unroll 16
  for (int64_t r = 0; r < kLanes; ++r) {
    if (kWhole || r < rows) vectors[r] = Real<kFrom>(from + r * turn.from_row, scales);
  }
  Transpose(vectors);
#pragma GCC unroll 16
  for (int64_t c = 0; c < kLanes; ++c) {
    if constexpr (kWhole) {
      StoreReal<kTo>(to + c * turn.to_row, vectors[c], scales);
    } else {
      StoreFirst<kTo>(to + c * turn.to_row, vectors[c], rows, scales);
    }
  }
}

// Fewer columns than a vector has.
template <Number kFrom, Number kTo>
void TurnOneByOne(const Item<kFrom>* src, const Turn& turn, const Scales& scales, Item<kTo>* dst) {
  for (int64_t column = 0; column < turn.columns; ++column) {
    for (int64_t row = 0; row < turn.rows; row += kLanes) {
      const int64_t rows = std::min(kLanes, turn.rows - row);
      Item<kFrom> there[kLanes] = {};
      for (int64_t r = 0; r < rows; ++r) there[r] = src[(row + r) * turn.from_row + column];
      Few<kFrom, kTo>(there, rows, scales, dst + column * turn.to_row + row);
    }
  }
}

// Tiles at the ends begin earlier where that makes them whole, and write again what is there.
template <Number kFrom, Number kTo>
void TurnIntoReal(const void* from, const Turn& turn, const Scales& scales, void* to) {
  const auto* src = static_cast<const Item<kFrom>*>(from);
  auto* dst = static_cast<Item<kTo>*>(to);
  if (turn.columns < kLanes) return TurnOneByOne<kFrom, kTo>(src, turn, scales, dst);
  const bool triples = turn.rows == 3 && turn.to_row == 3;
  for (int64_t next = 0; next < turn.columns; next += kLanes) {
    const int64_t column = std::min(next, turn.columns - kLanes);
    auto* pixels = dst + column * turn.to_row;
    if (triples) {
      TurnThree<kFrom, kTo>(src + column, turn, scales, pixels);
      continue;
    }
    if (turn.rows < kLanes) {
      TurnTile<kFrom, kTo, false>(src + column, turn, turn.rows, scales, pixels);
      continue;
    }
    for (int64_t next_row = 0; next_row < turn.rows; next_row += kLanes) {
      const int64_t row = std::min(next_row, turn.rows - kLanes);
      TurnTile<kFrom, kTo, true>(src + row * turn.from_row + column, turn, kLanes, scales,
                                 pixels + row);
    }
  }
}

// --- the table ----------------------------------------------------------------------------------

template <Number kFrom, Number kTo>
Kernels Of(const Names& names) {
  const char* name = names.conversion;
  if constexpr (kFrom == Number::kShort && kTo == Number::kShort) {
    return {};
  } else if constexpr (IsReal(kFrom) && IsReal(kTo)) {
    return {names.turn, nullptr, TurnIntoReal<kFrom, kTo>};
  } else if constexpr (IsReal(kFrom)) {
    return {name, ConvertFlat<kFrom, kTo>, TurnIntoIntegers<kFrom, kTo>};
  } else if constexpr (IsReal(kTo)) {
    return {name, ConvertFlat<kFrom, kTo>, TurnIntoReal<kFrom, kTo>};
  } else {
    return {name, ConvertFlat<kFrom, kTo>, nullptr};
  }
}

template <Number kFrom>
Kernels From(Number dst, const Names& names) {
  switch (dst) {
    case Number::kFloat:
      return Of<kFrom, Number::kFloat>(names);
    case Number::kShort:
      return Of<kFrom, Number::kShort>(names);
    case Number::kUnsigned:
      return Of<kFrom, Number::kUnsigned>(names);
    case Number::kSigned:
      return Of<kFrom, Number::kSigned>(names);
  }
  return {};
}

Kernels Get(Number src, Number dst, const Names& names) {
  switch (src) {
    case Number::kFloat:
      return From<Number::kFloat>(dst, names);
    case Number::kShort:
      return From<Number::kShort>(dst, names);
    case Number::kUnsigned:
      return From<Number::kUnsigned>(dst, names);
    case Number::kSigned:
      return From<Number::kSigned>(dst, names);
  }
  return {};
}

}  // namespace
}  // namespace mxplan::conversion
