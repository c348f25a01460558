// Places of the largest and smallest elements, and numbers by which elements are sorted.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_ORDER_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_ORDER_IMPL_H_

#include "host/kernels/common_impl.h"

namespace mxplan::host {
namespace {

// Whether x is farther out than y.  One that is no number is farther than all that are.
template <bool largest, typename T>
MXPLAN_INLINE bool IsFarther(T x, T y) {
  const bool farther = largest ? x > y : x < y;
  if constexpr (std::is_floating_point_v<T>) return farther | ((x != x) & (y == y));
  return farther;
}

// A register of elements, and what comparing two of them gives.
template <typename T>
struct Packs {
  typedef T Register __attribute__((vector_size(4 * MXPLAN_LANES)));  // NOLINT: of a dependent type
  using Mask = decltype(Register{} == Register{});
  static constexpr int64_t kCount = sizeof(Register) / sizeof(T);
};

template <typename Mask>
MXPLAN_INLINE bool AnyOf(const Mask* mask) {
  uint64_t words[sizeof(Mask) / sizeof(uint64_t)], any = 0;
  __builtin_memcpy(words, mask, sizeof(words));
  for (uint64_t word : words) any |= word;
  return any != 0;
}

// The element farthest out of a row that fills a register; `none`: one of them is no number.
template <bool largest, typename T>
MXPLAN_INLINE T Farthest(const T* src, int64_t count, bool* none) {
  using Register = typename Packs<T>::Register;
  using Mask = typename Packs<T>::Mask;
  constexpr int64_t kStep = Packs<T>::kCount;
  Register parts[4];
  Mask odd = {};
  __builtin_memcpy(&parts[0], src, sizeof(Register));
  for (int k = 1; k < 4; ++k) parts[k] = parts[0];
  const auto take = [&](Register* part, const T* from) {
    Register x;
    __builtin_memcpy(&x, from, sizeof(x));
    if constexpr (std::is_floating_point_v<T>) odd |= x != x;
    *part = (largest ? x > *part : x < *part) ? x : *part;
  };
  int64_t i = 0;
  for (; i + 4 * kStep <= count; i += 4 * kStep) {
    for (int k = 0; k < 4; ++k) take(&parts[k], src + i + k * kStep);
  }
  for (; i + kStep <= count; i += kStep) take(&parts[0], src + i);
  take(&parts[1], src + count - kStep);  // the last ones, some of them once more
  for (int k = 1; k < 4; ++k) {
    parts[0] = (largest ? parts[k] > parts[0] : parts[k] < parts[0]) ? parts[k] : parts[0];
  }
  *none = AnyOf(&odd);
  T each[kStep];
  __builtin_memcpy(each, &parts[0], sizeof(each));
  T found = each[0];
  for (T x : each) found = (largest ? x > found : x < found) ? x : found;
  return found;
}

// Whether an element is the one that is looked for; `none`: any that is no number is.
template <typename T>
struct Wanted {
  T value;
  bool none;
  MXPLAN_INLINE bool operator()(T x) const { return none ? x != x : x == value; }
};

// The place of the first or the last element of a row that is wanted, of which there is one.
template <bool last, typename T>
MXPLAN_INLINE int32_t PlaceOf(const T* src, int64_t count, const Wanted<T>& wanted) {
  using Register = typename Packs<T>::Register;
  using Mask = typename Packs<T>::Mask;
  constexpr int64_t kPart = 4 * Packs<T>::kCount;
  const Register all = Register{} + wanted.value;
  int64_t begin = last ? count : 0;  // all behind it, or before it, are other ones
  while (last ? begin >= kPart : begin + kPart <= count) {
    const T* from = last ? src + begin - kPart : src + begin;
    Mask any = {};
    for (int64_t k = 0; k < 4; ++k) {
      Register x;
      __builtin_memcpy(&x, from + k * Packs<T>::kCount, sizeof(x));
      any |= wanted.none ? x != x : x == all;
    }
    if (AnyOf(&any)) break;
    begin += last ? -kPart : kPart;
  }
  if constexpr (last) {
    do --begin;
    while (begin > 0 && !wanted(src[begin]));
  } else {
    while (begin < count - 1 && !wanted(src[begin])) ++begin;
  }
  return static_cast<int32_t>(begin);
}

template <bool largest, bool last, typename T>
void FarthestOfRows(const T* src, int64_t row, const Extent& extent, int32_t* found) {
  const auto count = static_cast<int32_t>(extent.count);
  for (int64_t r = 0; r < extent.rows; ++r, src += row) {
    if (count >= Packs<T>::kCount) {
      bool none = false;
      const T value = Farthest<largest>(src, count, &none);
      found[r] = PlaceOf<last>(src, count, Wanted<T>{value, none});
      continue;
    }
    // Without branches, whose outcome nobody can guess.
    T value = src[0];
    int32_t place = 0;
    for (int32_t i = 1; i < count; ++i) {
      const bool better =
          last ? !IsFarther<largest>(value, src[i]) : IsFarther<largest>(src[i], value);
      value = better ? src[i] : value;
      place = better ? i : place;
    }
    found[r] = place;
  }
}

template <bool largest, bool last, typename T>
void FarthestOfColumns(const T* src, int64_t row, const Extent& extent, int32_t* found) {
  T values[kMostColumns];
  const int64_t count = extent.count;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = src[i];
    found[i] = 0;
  }
  for (int32_t r = 1, rows = static_cast<int32_t>(extent.rows); r < rows; ++r) {
    const T* from = src + r * row;
    MXPLAN_FOR_EACH(i, count) {
      const bool better =
          last ? !IsFarther<largest>(values[i], from[i]) : IsFarther<largest>(from[i], values[i]);
      values[i] = better ? from[i] : values[i];
      found[i] = better ? r : found[i];
    }
  }
}

// Calls `of` with two constants, which loops are compiled for.
template <typename Of>
MXPLAN_INLINE void WithSearch(const Search& search, const Of& of) {
  if (search.largest && search.last) return of(std::true_type(), std::true_type());
  if (search.largest) return of(std::true_type(), std::false_type());
  if (search.last) return of(std::false_type(), std::true_type());
  of(std::false_type(), std::false_type());
}

void FarthestRowsKernel(Type type, Search search, const void* src, int64_t row, Extent extent,
                        int32_t* found) {
  WithType(type, [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(src);
    WithSearch(search, [&](auto largest, auto last) {
      FarthestOfRows<decltype(largest)::value, decltype(last)::value>(from, row, extent, found);
    });
  });
}

void FarthestColumnsKernel(Type type, Search search, const void* src, int64_t row, Extent extent,
                           int32_t* found) {
  WithType(type, [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(src);
    WithSearch(search, [&](auto largest, auto last) {
      FarthestOfColumns<decltype(largest)::value, decltype(last)::value>(from, row, extent, found);
    });
  });
}

// A whole number that is larger for larger elements: both zeros have one, and so have all that are
// no numbers, the largest.
template <typename T>
MXPLAN_INLINE auto KeyOf(T x) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    const auto bits = Bits<Key>(x + T{0});  // of -0 this is 0
    const Key key = bits & kTop ? ~bits : bits | kTop;
    return x != x ? ~Key{0} : key;
  } else {
    return std::is_signed_v<T> ? static_cast<Key>(x) ^ kTop : static_cast<Key>(x);
  }
}

void SortKeysKernel(Type type, bool largest, Strided src, void* keys) {
  WithType(type, [&](auto zero) {
    using T = decltype(zero);
    using Key = decltype(KeyOf(zero));
    auto* to = static_cast<Key*>(keys);
    const auto turned = largest ? ~Key{0} : Key{0};
    WithStrides(src.stride, 1, [&](auto along, auto) {
      const auto from = Row<T>(src, 0, along);
      MXPLAN_FOR_EACH(i, src.row) to[i] = KeyOf<T>(from[i]) ^ turned;
    });
  });
}

template <typename Key>
int64_t KeysBelow(const Key* keys, int64_t count, Key limit, int32_t* found) {
  constexpr int64_t kPart = 64;
  int64_t below = 0, i = 0;
  for (; i + kPart <= count; i += kPart) {
    Key any = 0;
    for (int64_t k = 0; k < kPart; ++k) any |= keys[i + k] < limit ? 1 : 0;
    if (any == 0) continue;
    for (int64_t k = i; k < i + kPart; ++k) {
      found[below] = static_cast<int32_t>(k);
      below += keys[k] < limit ? 1 : 0;
    }
  }
  for (; i < count; ++i) {
    found[below] = static_cast<int32_t>(i);
    below += keys[i] < limit ? 1 : 0;
  }
  return below;
}

int64_t KeysBelowKernel(int64_t key_bytes, const void* keys, int64_t count, uint64_t limit,
                        int32_t* found) {
  if (key_bytes == 8) {
    return KeysBelow(static_cast<const uint64_t*>(keys), count, limit, found);
  }
  const auto narrow = static_cast<uint32_t>(limit);
  return KeysBelow(static_cast<const uint32_t*>(keys), count, narrow, found);
}

}  // namespace
}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_ORDER_IMPL_H_
