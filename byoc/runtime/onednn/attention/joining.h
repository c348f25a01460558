// Keys or values behind past ones, in rows of bytes.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_JOINING_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_JOINING_H_

#include <cstdint>

namespace mxplan::attention {

// Rows of one head that stand `stride` bytes apart.
struct ByteRows {
  char* data = nullptr;
  int64_t count = 0, stride = 0;
};

// Copies rows of `bytes` from `past`, and behind them those from `fresh`, to `joined`.  Where that
// has more rows, the last ones are those of the same places behind `past`, and nothing that stands
// in its place already is copied.
void Join(const ByteRows& past, const ByteRows& fresh, int64_t bytes, const ByteRows& joined);

}  // namespace mxplan::attention

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ATTENTION_JOINING_H_
