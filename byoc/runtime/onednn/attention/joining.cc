// See joining.h.
#include "onednn/attention/joining.h"

#include <cstring>

namespace mxplan::attention {
namespace {

// Rows that stand one behind the other are copied as one.
void Copy(ByteRows from, int64_t bytes, const ByteRows& to) {
  if (from.data == to.data && from.stride == to.stride) return;
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
  auto behind = [](const ByteRows& rows, int64_t first, int64_t count) {
    return ByteRows{rows.data + first * rows.stride, count, rows.stride};
  };
  const int64_t used = past.count + fresh.count, left = joined.count - used;
  Copy(past, bytes, joined);
  Copy(fresh, bytes, behind(joined, past.count, fresh.count));
  if (left > 0) Copy(behind(past, used, left), bytes, behind(joined, used, left));
}

}  // namespace mxplan::attention
