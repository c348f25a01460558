// Steps that say where elements stand in an order: extreme_index and ranking.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/error.h"
#include "host/steps/builders.h"
#include "host/steps/lines.h"

namespace mxplan::host {
namespace {

// Places as a result has them.
struct OrderPlaces {
  char* data;
  bool wide;  // int64, else int32
  void Write(int64_t at, int32_t place) const {
    if (wide) {
      reinterpret_cast<int64_t*>(data)[at] = place;
    } else {
      reinterpret_cast<int32_t*>(data)[at] = place;
    }
  }
  void Write(int64_t begin, const int32_t* places, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) Write(begin + i, places[i]);
  }
};

struct ExtremeIndex {
  Lines lines;
  Type type;
  Search search;
  int64_t bytes;

  void Run(const char* src, OrderPlaces dst) const {
    const double element_ns = 0.05 * static_cast<double>(bytes);
    if (lines.inner == 1) {
      ParallelFor(lines.outer, 3.0 + element_ns * static_cast<double>(lines.extent),
                  [&](int64_t begin, int64_t end) { OfRows(src, dst, begin, end); });
      return;
    }
    const int64_t parts = (lines.inner + kMostColumns - 1) / kMostColumns;
    const auto of_part = static_cast<double>(lines.extent * std::min(lines.inner, kMostColumns));
    ParallelFor(lines.outer * parts, element_ns * of_part, [&](int64_t begin, int64_t end) {
      std::array<int32_t, kMostColumns> found;
      for (int64_t at = begin; at < end; ++at) {
        const int64_t outer = at / parts, first = at % parts * kMostColumns;
        const int64_t count = std::min(kMostColumns, lines.inner - first);
        KernelsHere().farthest_columns(type, search,
                                       src + (outer * lines.extent * lines.inner + first) * bytes,
                                       lines.inner, {lines.extent, count}, found.data());
        dst.Write(outer * lines.inner + first, found.data(), count);
      }
    });
  }

 private:
  void OfRows(const char* src, OrderPlaces dst, int64_t begin, int64_t end) const {
    std::array<int32_t, kMostColumns> found;
    for (int64_t at = begin; at < end; at += kMostColumns) {
      const int64_t rows = std::min(kMostColumns, end - at);
      KernelsHere().farthest_rows(type, search, src + at * lines.extent * bytes, lines.extent,
                                  {rows, lines.extent}, found.data());
      dst.Write(at, found.data(), rows);
    }
  }
};

// --- ranking -------------------------------------------------------------------------------------

constexpr int64_t kPart = 512;  // keys that are held against a limit at once
constexpr int64_t kFirst = 16;  // elements beside those that are asked for, before others are tried
constexpr int64_t kSortedBy = 96;  // from so many elements on, sorting by digits takes less
constexpr int64_t kFew = 6;        // of that many the first one: the others are not sorted

// Sorts numbers whose upper halves are keys, and whose lower halves are their places so far.
template <typename Packed>
void SortByKeys(Packed* held, Packed* spare, int64_t count) {
  if (count < kSortedBy) {
    std::sort(held, held + count);
    return;
  }
  constexpr int kHalf = 4 * sizeof(Packed), kDigits = sizeof(Packed) / 2;
  Packed *from = held, *to = spare;
  for (int digit = 0; digit < kDigits; ++digit) {
    const int shift = kHalf + 8 * digit;
    std::array<int64_t, 256> ends{};
    for (int64_t i = 0; i < count; ++i) ++ends[static_cast<uint8_t>(from[i] >> shift)];
    if (ends[static_cast<uint8_t>(from[0] >> shift)] == count) continue;  // all have this digit
    int64_t begin = 0;
    for (int64_t& end : ends) begin += std::exchange(end, begin);
    for (int64_t i = 0; i < count; ++i)
      to[ends[static_cast<uint8_t>(from[i] >> shift)]++] = from[i];
    std::swap(from, to);
  }
  if (from != held) std::copy_n(from, count, held);
}

struct Ranking {
  Lines lines;
  Type type;
  bool largest;
  int64_t bytes, count;  // of an element; elements that are asked for

  bool IsPartial() const { return count * kFew <= lines.extent && lines.extent > kPart / 4; }
  int64_t KeyBytes() const { return bytes == 8 ? 8 : 4; }
  int64_t Held() const { return IsPartial() ? 2 * count + 2 * kPart : lines.extent; }
  // Bytes for one thread: keys, packed numbers twice, places.
  int64_t Room() const {
    const int64_t each = lines.extent * KeyBytes() + 4 * Held() * KeyBytes() + kPart * 4;
    return (each + 255) / 64 * 64;
  }
  double RowNs() const { return (IsPartial() ? 1.0 : 8.0) * static_cast<double>(lines.extent); }

  void Run(char* const* at, const OrderPlaces* order) const {
    ParallelForThreads(lines.count(), RowNs(), [&](int64_t thread, int64_t begin, int64_t end) {
      char* room = at[2] + thread * Room();
      for (int64_t row = begin; row < end; ++row) {
        const int64_t outer = row / lines.inner, inner = row % lines.inner;
        const char* src = at[1] + (outer * lines.extent * lines.inner + inner) * bytes;
        const int64_t dst = outer * count * lines.inner + inner;
        if (bytes == 8) {
          Row<uint64_t, unsigned __int128>(src, room, at[0], dst, order);
        } else {
          Row<uint32_t, uint64_t>(src, room, at[0], dst, order);
        }
      }
    });
  }

 private:
  template <typename Key, typename Packed>
  void Row(const char* src, char* room, char* dst, int64_t begin, const OrderPlaces* order) const {
    auto* held = reinterpret_cast<Packed*>(room);
    Packed* spare = held + Held();
    auto* keys = reinterpret_cast<Key*>(spare + Held());
    auto* found = reinterpret_cast<int32_t*>(keys + lines.extent);
    KernelsHere().sort_keys(type, largest, {src, lines.inner, lines.extent}, keys);
    if (IsPartial()) {
      const int64_t left = First(keys, held, found);
      std::nth_element(held, held + count - 1, held + left);
      std::sort(held, held + count);
    } else {
      for (int64_t i = 0; i < lines.extent; ++i) held[i] = Join<Packed>(keys[i], i);
      SortByKeys(held, spare, lines.extent);
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto place = static_cast<int32_t>(static_cast<Key>(held[i]));
      const int64_t to = begin + i * lines.inner;
      Copy(src + place * lines.inner * bytes, dst + to * bytes);
      if (order != nullptr) order->Write(to, place);
    }
  }

  template <typename Packed, typename Key>
  static Packed Join(Key key, int64_t place) {
    return static_cast<Packed>(key) << (4 * sizeof(Packed)) | static_cast<Packed>(place);
  }

  // Holds the elements that may be among the first: those below the last of them so far.  Returns
  // how many there are, at least as many as are asked for.
  template <typename Key, typename Packed>
  int64_t First(const Key* keys, Packed* held, int32_t* found) const {
    int64_t left = std::min(lines.extent, 2 * count + kFirst), part = left;
    for (int64_t i = 0; i < left; ++i) held[i] = Join<Packed>(keys[i], i);
    Key limit = Limit<Key>(held, &left);
    // As many as were seen before, so that about as many as are asked for get past the limit.
    int64_t some = 0;
    for (int64_t at = part; at < lines.extent; at += some, part += some) {
      some = std::min({kPart, part, lines.extent - at});
      const int64_t more = KernelsHere().keys_below(sizeof(Key), keys + at, some, limit, found);
      for (int64_t i = 0; i < more; ++i) {
        held[left + i] = Join<Packed>(keys[at + found[i]], at + found[i]);
      }
      left += more;
      if (left > count + count / 2 + kFirst) limit = Limit<Key>(held, &left);
    }
    return left;
  }

  // Leaves as many as are asked for; the key of the last of them.
  template <typename Key, typename Packed>
  Key Limit(Packed* held, int64_t* left) const {
    std::nth_element(held, held + count - 1, held + *left);
    *left = count;
    return static_cast<Key>(held[count - 1] >> (4 * sizeof(Packed)));
  }

  void Copy(const char* from, char* to) const {
    if (bytes == 4) {
      std::copy_n(reinterpret_cast<const uint32_t*>(from), 1, reinterpret_cast<uint32_t*>(to));
    } else {
      std::copy_n(from, bytes, to);
    }
  }
};

}  // namespace

void BuildExtremeIndex(StepBuilder* b) {
  ExtremeIndex step;
  step.lines = LinesOf(*b);
  step.type = b->ComputedType("src");
  step.bytes = b->ElementBytes("src");
  step.search.largest = TextOf(b->step(), "algorithm") == "max";
  step.search.last = FlagOf(b->step(), "last");
  const bool wide = b->ElementBytes("dst") == 8;
  b->Add({"dst", "src"}, [step, wide](char* const* at) { step.Run(at[1], {at[0], wide}); });
}

void BuildRanking(StepBuilder* b) {
  Ranking step;
  step.lines = LinesOf(*b);
  step.type = b->ComputedType("src");
  step.bytes = b->ElementBytes("src");
  step.largest = FlagOf(b->step(), "largest");
  step.count = b->Get("dst").dims[static_cast<size_t>(IntegerOf(b->step(), "axis"))];
  if (step.count == 0) step.lines.outer = 0;
  b->NeedScratchpad(step.Room() * omp_get_max_threads());
  if (b->step().Find("order") < 0) {
    b->Add({"dst", "src"}, [step](char* const* at) { step.Run(at, nullptr); });
    return;
  }
  const bool wide = b->ElementBytes("order") == 8;
  b->Add({"dst", "src", "order"}, [step, wide](char* const* at) {
    const OrderPlaces order{at[2], wide};
    char* const moved[] = {at[0], at[1], at[3]};
    step.Run(moved, &order);
  });
}

}  // namespace mxplan::host
