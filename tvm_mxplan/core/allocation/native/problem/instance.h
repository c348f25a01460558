// The problem that the planner's searches work on: one connected part of one arena, over sections
// of time, as tvm_mxplan/core/allocation/instance.py makes it.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_INSTANCE_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_INSTANCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mxplan::planner {

// A base that no item stands at.
inline constexpr int64_t kFar = int64_t{1} << 62;

// Bytes [low, high) from the base of an item, in sections [first, last).
struct Block {
  int32_t first;
  int32_t last;
  int64_t low;
  int64_t high;

  int64_t size() const { return high - low; }
  bool Meets(const Block& other) const { return first < other.last && other.first < last; }
};

// A part of a vector, for range-based loops.
template <typename T>
class Row {
 public:
  Row(const T* begin, const T* end) : begin_(begin), end_(end) {}
  const T* begin() const { return begin_; }
  const T* end() const { return end_; }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  const T& operator[](size_t at) const { return begin_[at]; }

 private:
  const T* begin_;
  const T* end_;
};

// Rows of different lengths, one behind the other.
template <typename T>
class Table {
 public:
  void Reserve(size_t rows, size_t values) {
    heads_.reserve(rows + 1);
    values_.reserve(values);
  }
  void Add(const T& value) { values_.push_back(value); }
  void EndRow() { heads_.push_back(values_.size()); }
  size_t rows() const { return heads_.size() - 1; }
  Row<T> operator[](size_t row) const {
    return {values_.data() + heads_[row], values_.data() + heads_[row + 1]};
  }
  const std::vector<T>& values() const { return values_; }
  // Index in values() of the first one of a row.
  size_t head(size_t row) const { return heads_[row]; }

 private:
  std::vector<T> values_;
  std::vector<size_t> heads_{0};
};

using Bases = std::vector<int64_t>;

struct Instance {
  Table<Block> shapes;             // of each item its blocks, which are disjoint
  std::vector<int64_t> alignment;  // of each base
  std::vector<int64_t> extent;     // bytes from the base to the highest end
  std::vector<int32_t> first;      // section in which the item is alive first
  std::vector<int32_t> last;       // section behind its last
  int32_t sections = 0;
  bool rigid = false;  // some item is more than one block at its base

  size_t size() const { return alignment.size(); }
};

// `heads` are the first blocks of the items and the number of all; a block is four numbers.
Instance MakeInstance(int64_t items, const int64_t* heads, const int64_t* blocks,
                      const int64_t* alignment, int64_t sections);

// Bytes that the items reach up to.
int64_t HeightOf(const Instance& instance, const Bases& bases);

// Least multiple of `alignment` that is at least `value`, which may be negative.
inline int64_t AlignUp(int64_t value, int64_t alignment) {
  if (alignment == 1) return value;
  const int64_t over = value % alignment;
  return over > 0 ? value + alignment - over : value - over;
}

// Greatest multiple of `alignment` that is at most `value`, which may be negative.
inline int64_t AlignDown(int64_t value, int64_t alignment) {
  const int64_t over = value % alignment;
  return over < 0 ? value - over - alignment : value - over;
}

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PROBLEM_INSTANCE_H_
