// Remembers states that were searched to the end in vain.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_FAILURES_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_FAILURES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mxplan::planner {

// Digest of the open items of a component with their least bases and bounds.  Of 128 bits, so that
// two states never have one in practice.
struct StateKey {
  uint64_t low = 0;
  uint64_t high = 0;

  void Add(uint64_t item, uint64_t least, uint64_t bound) {
    uint64_t word = Mixed(item * 0x9e3779b97f4a7c15u + least);
    word = Mixed(word ^ (bound * 0xd6e8feb86659fd93u));
    low += word;
    high += Mixed(word ^ 0xa0761d6478bd642fu);
  }

  bool operator==(const StateKey& other) const { return low == other.low && high == other.high; }

 private:
  static uint64_t Mixed(uint64_t word) {
    word = (word ^ (word >> 32)) * 0xd6e8feb86659fd93u;
    word = (word ^ (word >> 32)) * 0xd6e8feb86659fd93u;
    return word ^ (word >> 32);
  }
};

// A table of fixed size, in which a new state takes the place of an old one.
class Failures {
 public:
  explicit Failures(size_t bits) : mask_((size_t{1} << bits) - 1), keys_(mask_ + 1) {}

  void Add(const StateKey& key) { keys_[key.low & mask_] = key; }
  bool Has(const StateKey& key) const { return keys_[key.low & mask_] == key; }
  void Clear() { keys_.assign(keys_.size(), StateKey()); }

 private:
  size_t mask_;
  std::vector<StateKey> keys_;
};

}  // namespace mxplan::planner

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_FAILURES_H_
