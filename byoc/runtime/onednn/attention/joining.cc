// See joining.h.
#include "onednn/attention/joining.h"

#include <cstring>

namespace mxplan::attention {
namespace {

// Rows that stand one behind the other are copied as one.
void Copy(ByteRows from, int64_t bytes, const ByteRows& to) {
  if (from.stride == bytes && to.stride == bytes) {
    bytes *= from.count;
    from.count = from.count > 0 ? 1 : 0;
  }
  for (int64_t i = 0; i < from.count; ++i) {
    std::memcpy(to.data + i * to.stride, from.data + i * from.stride, static_cast<size_t>(bytes));
  }
}

}  // namespace

void Join(const ByteRows& past, const ByteRows& fresh, int64_t bytes, const ByteRows& joined) {
  Copy(past, bytes, joined);
  Copy(fresh, bytes, {joined.data + past.count * joined.stride, fresh.count, joined.stride});
}

}  // namespace mxplan::attention
