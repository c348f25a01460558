// Subnormal numbers as zeros, on one thread and for as long as an object lives.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_FLUSH_SUBNORMALS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_FLUSH_SUBNORMALS_H_

#include <immintrin.h>

namespace mxplan {

// Products of subnormal numbers, or with such a result, take some hundred cycles each. Activations
// that saturate (swish of -90) are full of them.
class FlushSubnormals {
 public:
  FlushSubnormals() : kept_(_mm_getcsr()) { _mm_setcsr(kept_ | kFlushResults | kFlushOperands); }
  ~FlushSubnormals() { _mm_setcsr(kept_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  static constexpr unsigned kFlushResults = 0x8000, kFlushOperands = 0x0040;
  unsigned kept_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_VECTORS_FLUSH_SUBNORMALS_H_
