// The kernel for vectors of kVector bytes; included once for each instruction set, behind its
// operations on them (Bytes, Load, LoadFirst, Store, StoreFirst, and of elements Least and Larger).
// Everything is in an unnamed namespace.
//
// Elements are compared as integers: Key makes those of elements, and Back elements of them.
#include <algorithm>
#include <cstring>

namespace mxplan::maxima {
namespace {

constexpr int kTogether = 4;  // vectors of a row
// Padding, as bits.
constexpr uint8_t kLeastSigned = 128;
constexpr uint16_t kLeastShort = 0xff80;

// Numbers in bfloat16 as unsigned integers in their order, from that of -inf on: with the sign the
// other way around, negative ones with all bits so.  What is no number comes behind +inf.
using Words = int16_t __attribute__((vector_size(kVector)));
constexpr int16_t kSign = -0x8000, kBelow = 0x7f, kTop = 15;
template <Element kElement>
MXPLAN_INLINE Bytes Key(Bytes elements) {
  if constexpr (kElement != Element::kShort) return elements;
  const Words x = reinterpret_cast<Words>(elements);
  return reinterpret_cast<Bytes>((x ^ (x >> kTop | kSign)) - kBelow);
}
template <Element kElement>
MXPLAN_INLINE Bytes Back(Bytes keys) {
  if constexpr (kElement != Element::kShort) return keys;
  const Words x = reinterpret_cast<Words>(keys) + kBelow;
  return reinterpret_cast<Bytes>(x ^ (~(x >> kTop) | kSign));
}

// The elements of a window along an axis that are no padding.
struct Taken {
  int64_t first = 0, count = 0;
};

Taken TakenOf(const Axis& axis, int64_t place) {
  const int64_t begin = place * axis.stride - axis.padding;
  if (begin >= 0 && begin + (axis.window - 1) * axis.dilation < axis.src) {
    return {begin, axis.window};  // a division less
  }
  const int64_t skipped = begin < 0 ? (-begin + axis.dilation - 1) / axis.dilation : 0;
  const int64_t left = axis.src - begin;
  const int64_t end =
      std::min(axis.window, left > 0 ? (left + axis.dilation - 1) / axis.dilation : 0);
  return {begin + skipped * axis.dilation, std::max<int64_t>(end - skipped, 0)};
}

// Vectors to compare, along up to three axes.
struct Loop {
  int64_t count = 1, step = 0;
};
struct Nest {
  Loop depth, height, width;
};

// Bytes from one of the vectors that are compared together to the next.
struct Apart {
  int64_t src = kVector, dst = kVector;
};

// kColumns is the innermost count, or 0 for any.
template <Element kElement, int kVectors, int kColumns>
MXPLAN_INLINE void Compare(const uint8_t* from, const Nest& nest, const Apart& apart, uint8_t* to) {
  Bytes largest[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) largest[i] = Least<kElement>();
  const int64_t columns = kColumns > 0 ? kColumns : nest.width.count;
  for (int64_t d = 0; d < nest.depth.count; ++d) {
    const uint8_t* row = from + d * nest.depth.step;
    for (int64_t y = 0; y < nest.height.count; ++y, row += nest.height.step) {
      const uint8_t* at = row;
#pragma GCC unroll 4
      for (int64_t x = 0; x < columns; ++x, at += nest.width.step) {
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) {
          largest[i] = Larger<kElement>(largest[i], Key<kElement>(Load(at + i * apart.src)));
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) Store(to + i * apart.dst, Back<kElement>(largest[i]));
}

template <Element kElement, int kVectors>
MXPLAN_INLINE void CompareAny(const uint8_t* from, const Nest& nest, uint8_t* to,
                              const Apart& apart = {}) {
  switch (nest.width.count) {
    case 1:
      return Compare<kElement, kVectors, 1>(from, nest, apart, to);
    case 2:
      return Compare<kElement, kVectors, 2>(from, nest, apart, to);
    case 3:
      return Compare<kElement, kVectors, 3>(from, nest, apart, to);
    default:
      return Compare<kElement, kVectors, 0>(from, nest, apart, to);
  }
}

// Less than a vector.
template <Element kElement>
void CompareFirst(const uint8_t* from, const Nest& nest, int64_t count, uint8_t* to) {
  Bytes largest = Least<kElement>();
  for (int64_t d = 0; d < nest.depth.count; ++d) {
    for (int64_t y = 0; y < nest.height.count; ++y) {
      const uint8_t* at = from + d * nest.depth.step + y * nest.height.step;
      for (int64_t x = 0; x < nest.width.count; ++x, at += nest.width.step) {
        largest = Larger<kElement>(largest, Key<kElement>(LoadFirst(at, count)));
      }
    }
  }
  StoreFirst(to, count, Back<kElement>(largest));
}

// `count` bytes side by side.
template <Element kElement>
void CompareAlong(const uint8_t* from, const Nest& nest, int64_t count, uint8_t* to) {
  if (count < kVector) return CompareFirst<kElement>(from, nest, count, to);
  int64_t i = 0;
  for (; i + kTogether * kVector <= count; i += kTogether * kVector) {
    CompareAny<kElement, kTogether>(from + i, nest, to + i);
  }
  for (; i + kVector <= count; i += kVector) CompareAny<kElement, 1>(from + i, nest, to + i);
  if (i == count) return;
  // Some of the vector before, and the rest.
  CompareAny<kElement, 1>(from + count - kVector, nest, to + count - kVector);
}

// Columns that so many windows side by side reach, padding too.
int64_t Reached(const Axis& width, int64_t windows) {
  return (windows - 1) * width.stride + (width.window - 1) * width.dilation + 1;
}

// True where comparing every window by itself takes fewer loads and stores.
bool IsAtOnce(const Windows& of) {
  if (of.pixel < kVector) return false;
  constexpr int64_t kStored = 2;
  const int64_t rows = of.depth.window * of.height.window, columns = of.width.window;
  const int64_t at_once = of.width.dst * (rows * columns + kStored);
  return at_once <=
         Reached(of.width, of.width.dst) * (rows + kStored) + of.width.dst * (columns + kStored);
}

int64_t ScratchOf(const Windows& of) {
  return IsAtOnce(of) ? 0 : Reached(of.width, of.width.dst) * of.pixel + kVector;
}

// The vectors of src that a row of dst takes.
struct Rows {
  const uint8_t* from = nullptr;  // column 0
  Nest nest;                      // without columns
};

Rows RowsOf(const Windows& of, const uint8_t* src, int64_t row) {
  const int64_t image = row / (of.height.dst * of.depth.dst);
  const Taken depth = TakenOf(of.depth, row / of.height.dst % of.depth.dst);
  const Taken height = TakenOf(of.height, row % of.height.dst);
  const int64_t line = of.width.src * of.pixel, slice = of.height.src * line;
  Rows rows;
  rows.nest.depth = {depth.count, of.depth.dilation * slice};
  rows.nest.height = {height.count, of.height.dilation * line};
  // Nothing is read where a count is 0.
  rows.from = src + (image * of.depth.src + depth.first) * slice + height.first * line;
  return rows;
}

// Windows of neighbouring pixels together, where pixels are too narrow for as many vectors.
template <Element kElement>
void PixelsTogether(const Windows& of, const uint8_t* from, const Nest& nest, uint8_t* dst) {
  const Apart apart{of.width.stride * of.pixel, of.pixel};
  const int64_t last = of.pixel - kVector;
  for (int64_t i = 0;; i = std::min(i + kVector, last)) {
    CompareAny<kElement, kTogether>(from + i, nest, dst + i, apart);
    if (i == last) return;
  }
}

template <Element kElement>
void AtOnce(const Windows& of, const Rows& rows, int64_t begin, int64_t end, uint8_t* dst) {
  Nest nest = rows.nest;
  nest.width.step = of.width.dilation * of.pixel;
  const bool narrow = of.pixel < kTogether * kVector;
  for (int64_t x = begin; x < end;) {
    const Taken taken = TakenOf(of.width, x);
    const uint8_t* const from = rows.from + taken.first * of.pixel;
    nest.width.count = taken.count;
    int64_t done = 1;
    if (narrow && taken.count == of.width.window && x + kTogether <= end &&
        TakenOf(of.width, x + kTogether - 1).count == of.width.window) {
      done = kTogether;
      PixelsTogether<kElement>(of, from, nest, dst);
    } else {
      CompareAlong<kElement>(from, nest, of.pixel, dst);
    }
    x += done;
    dst += done * of.pixel;
  }
}

// Pixels of a row that windows skip between: a vector beyond a pixel's channels is written over by
// the next pixel.
template <Element kElement>
void PixelsApart(const Windows& of, const uint8_t* row, int64_t count, uint8_t* dst) {
  const uint8_t* const end = dst + count * of.pixel;
  const int64_t step = of.width.stride * of.pixel;
  const Nest nest{{}, {}, {of.width.window, of.width.dilation * of.pixel}};
  for (; dst < end; dst += of.pixel, row += step) {
    if (of.pixel < kVector && end - dst >= kVector) {
      CompareAny<kElement, 1>(row, nest, dst);
    } else {
      CompareAlong<kElement>(row, nest, of.pixel, dst);
    }
  }
}

template <Element kElement>
MXPLAN_INLINE void FillWithLeast(uint8_t* to, int64_t bytes) {
  if constexpr (kElement == Element::kShort) {
    for (int64_t i = 0; i < bytes; i += sizeof(kLeastShort)) {
      std::memcpy(to + i, &kLeastShort, sizeof(kLeastShort));
    }
  } else {
    std::memset(to, kElement == Element::kSigned ? kLeastSigned : 0, static_cast<size_t>(bytes));
  }
}

template <Element kElement>
void InTurns(const Windows& of, const Rows& rows, int64_t begin, int64_t end, uint8_t* scratch,
             uint8_t* dst) {
  const Axis& width = of.width;
  const int64_t reached = Reached(width, end - begin);
  const int64_t first = begin * width.stride - width.padding;
  // Columns in front of src and behind it; between them are those that there are.
  const int64_t front = std::clamp<int64_t>(-first, 0, reached);
  const int64_t back = std::clamp<int64_t>(first + reached - width.src, 0, reached - front);
  const int64_t there = reached - front - back;
  const auto fill = [&](int64_t column, int64_t count) {
    if (count == 0) return;
    FillWithLeast<kElement>(scratch + column * of.pixel, count * of.pixel);
  };
  fill(0, front);
  fill(front + there, back);
  CompareAlong<kElement>(rows.from + (first + front) * of.pixel, rows.nest, there * of.pixel,
                         scratch + front * of.pixel);
  if (width.stride > 1) return PixelsApart<kElement>(of, scratch, end - begin, dst);
  const Nest nest{{}, {}, {width.window, width.dilation * of.pixel}};
  CompareAlong<kElement>(scratch, nest, (end - begin) * of.pixel, dst);
}

template <Element kElement>
void RunAll(const Windows& of, const uint8_t* src, uint8_t* dst, int64_t begin, int64_t end,
            uint8_t* scratch) {
  const int64_t width = of.width.dst;
  const bool at_once = IsAtOnce(of);
  while (begin < end) {
    const int64_t row = begin / width, last = std::min(end, (row + 1) * width);
    const int64_t from = begin - row * width, to = last - row * width;
    const Rows rows = RowsOf(of, src, row);
    uint8_t* const pixels = dst + begin * of.pixel;
    if (at_once) {
      AtOnce<kElement>(of, rows, from, to, pixels);
    } else {
      InTurns<kElement>(of, rows, from, to, scratch, pixels);
    }
    begin = last;
  }
}

}  // namespace
}  // namespace mxplan::maxima
