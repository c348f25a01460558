// Loops over elements that stand one behind the other, as plain functions on pointers: one set of
// them for each instruction set, from one source (kernels_impl.h).
//
// A stride of an operand is 0, where one element is taken for all, or any number of elements; so is
// that of its rows.  Kernels walk through short rows without being called for each.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_KERNELS_H_

#include <cstdint>

namespace mxplan::host {

enum class Unary : uint8_t {
  kAbs,
  kCeil,
  kCos,
  kErf,
  kExp,
  kFloor,
  kLog,
  kNegative,
  kRelu,
  kRound,
  kRsqrt,
  kSign,
  kSin,
  kSqrt,
  kSquare,
  kTrunc,
};
enum class Binary : uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax };
enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
// Types that are computed with; any others are only moved.
enum class Type : uint8_t { kF32, kF64, kI8, kU8, kI32, kI64, kBool };

// An operand of two loops, over rows and over the elements of a row: its first element, and the
// elements from one to the next, and from one row to the next.
struct Strided {
  const void* data = nullptr;
  int64_t stride = 1;
  int64_t row = 0;
};

// Results of the loops: elements of a row stand one behind the other.
struct Written {
  void* data = nullptr;
  int64_t row = 0;
};

struct Extent {
  int64_t rows = 1;
  int64_t count = 0;
};

// An element of a row: the largest or the smallest, the first of equal ones or the last.
struct Search {
  bool largest = true;
  bool last = false;
};

// Sums up to each place: without the element there, from the end on.
struct Cumulation {
  bool exclusive = false;
  bool reverse = false;
};

// Points of an image that lie anywhere in it: what they are made of, and what counts where it ends.
enum class Sampling : uint8_t { kNearest, kLinear, kCubic };
enum class Beyond : uint8_t { kZeros, kBorder, kReflection };

// Places of points along one axis: from -1 to 1, which are the outer corners of the first and the
// last pixel, or with `corners` their centres.
struct SampledAxis {
  const float* at = nullptr;
  int64_t extent = 1;
  bool corners = false;
};

// Points that are worked out at once; neighbours along an axis, and axes.
constexpr int64_t kMostSampled = 256, kMostAxisTerms = 4, kMostAxes = 3;
constexpr int64_t kMostTerms = 64;  // of a point

// Points that are sums of elements of an image.  There are `terms` indices and weights for each of
// `count`: the first ones of all points, then the second.
struct Points {
  const int32_t* index = nullptr;
  const float* weights = nullptr;  // null where there is one term
  int64_t terms = 1, count = 0;
  bool some = false;  // some indices are below 0, and count nothing
  // As find_together gives them, if it was asked: how many terms at a time, weights in their order,
  // and points, four at a time, by their numbers: those with neighbours side by side come first.
  int64_t across = 1;
  const float* turned = nullptr;
  const int32_t* groups = nullptr;
  int64_t together = 0;
};

// That are searched, or summed, at once.
constexpr int64_t kMostColumns = 256;

// Numbers in the two widest registers.
constexpr int64_t kMostLanes = 32;

// In formulas, i is one element of a row.
struct Kernels {
  const char* isa;

  // dst[i] = op(src[i]), float32; dst may be src, and src has a stride of 1.
  void (*unary)(Unary op, Strided src, Written dst, Extent extent);
  // dst[i] = op(a[i], b[i]) on float32, int32, int64 or bool, which has kMin and kMax.
  void (*binary)(Binary op, Type type, Strided a, Strided b, Written dst, Extent extent);
  // dst[i] = a[i] op b[i] as 0 or 1.
  void (*compare)(Comparison op, Type type, Strided a, Strided b, Written dst, Extent extent);
  // dst[i] = condition[i] ? a[i] : b[i], elements of 1, 2, 4 or 8 bytes.
  void (*select)(int64_t element_bytes, Strided condition, Strided a, Strided b, Written dst,
                 Extent extent);
  // dst[i] = src[i], elements of 1, 2, 4 or 8 bytes; dst is not src.
  void (*copy)(int64_t element_bytes, Strided src, Written dst, Extent extent);
  // dst[i] = src[i] in another type.  A number outside an integer type's range becomes what x86
  // makes of it: the smallest of an int32 or int64, whose low bytes narrower types take.
  void (*cast)(Type from, Type to, Strided src, Written dst, Extent extent);
  // dst[i] = src[index[i]], elements of 1, 2, 4 or 8 bytes, the same indices in every row.
  void (*take)(int64_t element_bytes, Strided src, const int64_t* index, Written dst,
               Extent extent);
  // The same for entries of any number of bytes, in rows of src that many bytes apart; those of dst
  // stand one behind the other.
  void (*take_entries)(int64_t entry_bytes, const char* src, int64_t src_row, const int64_t* index,
                       char* dst, Extent extent);
  // dst[k * stride] = op over row k, which is not empty: sums, products, the smallest and the
  // largest.  Rows of src begin `row` elements apart.
  void (*reduce_rows)(Binary op, const float* src, int64_t row, float* dst, int64_t stride,
                      Extent extent);
  // dst[i] = dst[i] op src[row * k + i] for k below `rows`.
  void (*reduce_columns)(Binary op, const float* src, int64_t row, int64_t rows, float* dst,
                         int64_t count);
  // dst[i] = sum of weights[k] * rows[k][i]
  void (*weighted_sum)(const float* const* rows, const float* weights, int64_t terms, float* dst,
                       int64_t count);
  // For each point `inner` elements: sums of weights times the elements at indices.
  void (*sum_points)(const float* src, const Points& points, int64_t inner, float* dst);
  // The same in a row of `extent` points, which has room for kMostLanes elements at least.
  void (*interpolate)(const float* src, int64_t extent, const Points& points, int64_t inner,
                      float* dst);
  // Finds the points that have `across` (2 or 4) neighbours side by side, each time that many of
  // their terms, and turns weights into that order; returns the number of such groups of four.
  int64_t (*find_together)(const Points& points, int64_t across, float* turned, int32_t* groups);
  // The neighbours of points, at most kMostSampled, and their weights, as sum_points reads them, in
  // the images of these numbers, one behind the other; returns whether some are outside, where
  // zeros count.
  bool (*sample_points)(Sampling sampling, Beyond beyond, const SampledAxis* axes, int64_t rank,
                        const int32_t* images, int64_t count, int32_t* index, float* weights);
  // found[k] = the place in row k, which is not empty, of the element that is searched for; rows of
  // src begin `row` elements apart.  One that is no number is farther out than all that are.
  void (*farthest_rows)(Type type, Search search, const void* src, int64_t row, Extent extent,
                        int32_t* found);
  // The same of columns: found[i] is the row, of `count` columns of at most kMostColumns.
  void (*farthest_columns)(Type type, Search search, const void* src, int64_t row, Extent extent,
                           int32_t* found);
  // keys[i] is smaller than keys[j] where src[i] comes before src[j]: the largest first, or the
  // smallest; what is no number is the largest.  There are src.row elements; keys have 8 bytes for
  // types of 8, and 4 for all others.
  void (*sort_keys)(Type type, bool largest, Strided src, void* keys);
  // Writes the places of keys below `limit` in their order, and returns how many there are; found
  // has room for one more than it returns, at most for all.
  int64_t (*keys_below)(int64_t key_bytes, const void* keys, int64_t count, uint64_t limit,
                        int32_t* found);
  // dst[i] = sum of the elements up to src[i], in each of extent.rows rows of extent.count elements
  // one behind the other; of float32, float64, int32 or int64.
  void (*cumulative_rows)(Type type, Cumulation way, const void* src, void* dst, Extent extent);
  // The same along columns, extent.count of them, at most kMostColumns; rows are `row` apart.
  void (*cumulative_columns)(Type type, Cumulation way, const void* src, void* dst, int64_t row,
                             Extent extent);
};

Kernels BaseKernels();
Kernels Avx2Kernels();
Kernels Avx512Kernels();

// The best that this processor has.
const Kernels& KernelsHere();

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_KERNELS_KERNELS_H_
