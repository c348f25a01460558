// A digest of bytes, fast enough to take from all weights of a model when it is loaded.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_BASE_DIGEST_H_
#define TVM_MXPLAN_BYOC_RUNTIME_BASE_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace mxplan {

// Different bytes meet by chance about once in 2^64 pairs.  Not for signatures: who knows the seed
// can make bytes meet on purpose.
using Digest = std::array<uint64_t, 2>;

class Digester {
 public:
  explicit Digester(uint64_t seed);
  void Add(const void* data, size_t bytes);
  // Of all that was added; pieces of other sizes with the same bytes may give another digest.
  Digest Take() const;

 private:
  static constexpr size_t kLanes = 8;
  std::array<uint64_t, kLanes> lanes_;
  std::array<uint64_t, kLanes> secrets_;
  uint64_t added_ = 0;
};

// A seed that nobody outside of this process knows.
uint64_t ProcessSeed();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_BASE_DIGEST_H_
