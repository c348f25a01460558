// The kernel of onednn/row_product/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it.  Everything is in an unnamed namespace or a template
// of one, so that the linker never takes one set's code for another's.
#include "onednn/post_ops/apply_impl.h"
#include "onednn/row_product/kernels.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan {
namespace {

constexpr int64_t kParts = 4;  // sums of a row that do not wait for each other

using Four = float __attribute__((vector_size(16)));

// A vector as the sum of its quarters, or whatever four lanes at a time are.
MXPLAN_INLINE Four Folded(Vec lanes) {
  Four parts[kLanes / 4];
  __builtin_memcpy(parts, &lanes, sizeof(lanes));
  for (int64_t count = kLanes / 8; count > 0; count /= 2) {
    for (int64_t i = 0; i < count; ++i) parts[i] += parts[i + count];
  }
  return parts[0];
}

// The sums of the lanes of four vectors.
MXPLAN_INLINE Four SumsOf(const Four* rows) {
  Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5) +
           __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  Four b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5) +
           __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

// Products of some numbers that stand side by side, added to `sum`: as many as fill a load.
template <typename Filter, typename Src>
struct Together {
  static constexpr int64_t kCount = kLanes;
  static MXPLAN_INLINE void Add(const Filter* filter, const Src* src, Vec* sum) {
    *sum += LoadAll(filter) * LoadAll(src);
  }
};

// Two in each word.  Both halves become float32 where they are: the order does not matter.
template <>
struct Together<Short, Short> {
  static constexpr int64_t kCount = 2 * kLanes;
  static MXPLAN_INLINE void Add(const Short* filter, const Short* src, Vec* sum) {
    const Ints a = LoadWords(filter), b = LoadWords(src);
    *sum += Widened(a) * Widened(b);
    *sum += WidenedHigh(a) * WidenedHigh(b);
  }
};

template <int kRows, typename Filter, typename Src>
MXPLAN_INLINE void Rows(const RowProduct& product, const Src* src, int64_t row, float* results) {
  const Filter* filters = static_cast<const Filter*>(product.filters) + row * product.depth;
  // One row after another, as they stand in memory: that is what processors fetch ahead by
  // themselves. Several rows at once, or fetching by instructions, took up to a third longer.
  Four sums[4] = {};
  for (int r = 0; r < kRows; ++r) {
    const Filter* filter = filters + r * product.depth;
    Vec parts[kParts] = {};
    int64_t i = 0;
    using Some = Together<Filter, Src>;
    for (; i + kParts * Some::kCount <= product.depth; i += kParts * Some::kCount) {
#pragma GCC unroll 4
      for (int64_t p = 0; p < kParts; ++p) {
        Some::Add(filter + i + p * Some::kCount, src + i + p * Some::kCount, &parts[p]);
      }
    }
    for (; i + kLanes <= product.depth; i += kLanes) {
      parts[0] += LoadAll(filter + i) * LoadAll(src + i);
    }
    const int64_t rest = product.depth - i;
    if (rest > 0) parts[1] += LoadFirst(filter + i, rest) * LoadFirst(src + i, rest);
    sums[r] = Folded((parts[0] + parts[1]) + (parts[2] + parts[3]));
  }
  const Four sum = SumsOf(sums);
  for (int r = 0; r < kRows; ++r) {
    results[r] = product.bias ? sum[r] + product.bias[row + r] : sum[r];
  }
}

// The post-ops of `count` results from `row` on, which become those of dst.
template <typename Dst>
inline void Finish(const RowProduct& product, const float* results, int64_t row, int64_t count,
                   Dst* dst) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t some = count - i < kLanes ? count - i : kLanes;
    Vec x = Load(results + i);
    for (int64_t op = 0; op < product.post_op_count; ++op) {
      const PostOp& post_op = product.post_ops[op];
      Vec other = {};
      if (post_op.code == PostOp::Code::kSum) other = LoadFirst(dst + row + i, some);
      if (post_op.data) other = LoadFirst(post_op.data + row + i, some);
      x = Apply(post_op, x, other);
    }
    StoreFirst(dst + row + i, some, x);
  }
}

template <typename Filter, typename Src>
inline void Product(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                    void* dst) {
  const auto* sample = static_cast<const Src*>(src);
  for (int64_t first = begin; first < end; first += kResultsAtOnce) {
    const int64_t count = end - first < kResultsAtOnce ? end - first : kResultsAtOnce;
    float results[kResultsAtOnce] = {};
    int64_t i = 0;
    for (; i + kRowsAtOnce <= count; i += kRowsAtOnce) {
      Rows<kRowsAtOnce, Filter>(product, sample, first + i, results + i);
    }
    for (; i < count; ++i) Rows<1, Filter>(product, sample, first + i, results + i);
    if (product.dst == kRealShort) {
      Finish(product, results, first, count, static_cast<Short*>(dst));
    } else {
      Finish(product, results, first, count, static_cast<float*>(dst));
    }
  }
}

inline void Dispatch(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                     void* dst) {
  if (product.filter == kRealShort) {
    return product.src == kRealShort ? Product<Short, Short>(product, src, begin, end, dst)
                                     : Product<Short, float>(product, src, begin, end, dst);
  }
  return product.src == kRealShort ? Product<float, Short>(product, src, begin, end, dst)
                                   : Product<float, float>(product, src, begin, end, dst);
}

}  // namespace
}  // namespace mxplan
