// Operands of a nest, row by row, for kernels that walk through rows themselves.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_OPERANDS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_OPERANDS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "host/kernels/kernels.h"
#include "host/nest.h"

namespace mxplan::host {

// Rows of fewer elements are put together where they can be.
constexpr int64_t kShortRow = 128;
// Of each operand that is repeated for it.
constexpr int64_t kRepeatedBytes = 4096;

// Bytes of an element of each operand.
template <size_t kOperands>
using ElementSizes = std::array<int64_t, kOperands>;

inline Written WrittenAt(const Strided& dst) { return {const_cast<void*>(dst.data), dst.row}; }

// Puts short rows together: operands that begin again in every row are repeated in a buffer, so
// that several rows become a long one.  False, with nothing done, where an operand neither goes on
// from row to row nor begins again, or where it would not pay.
//
//     dst  a b c | d e f | ...        src  x y z | x y z | ...  ->  x y z x y z
template <size_t kOperands, typename Call>
bool CallOnLongRows(std::array<Strided, kOperands> operands, const ElementSizes<kOperands>& sizes,
                    const Extent& extent, const Call& call) {
  std::array<bool, kOperands> repeated{};
  int64_t together = extent.rows / 4;  // filling a buffer takes as long as reading it
  for (size_t k = 0; k < kOperands; ++k) {
    if (operands[k].row == extent.count * operands[k].stride) continue;
    if (operands[k].row != 0 || operands[k].stride != 1) return false;
    repeated[k] = true;
    together = std::min(together, kRepeatedBytes / (sizes[k] * extent.count));
  }
  if (together < 2) return false;
  alignas(64) char room[kOperands][kRepeatedBytes];
  for (size_t k = 0; k < kOperands; ++k) {
    if (!repeated[k]) continue;
    const auto bytes = static_cast<size_t>(sizes[k] * extent.count);
    for (int64_t i = 0; i < together; ++i) {
      std::memcpy(room[k] + static_cast<size_t>(i) * bytes, operands[k].data, bytes);
    }
    operands[k].data = room[k];
  }
  for (int64_t row = 0; row < extent.rows; row += together) {
    std::array<Strided, kOperands> some = operands;
    for (size_t k = 0; k < kOperands; ++k) {
      if (repeated[k]) continue;
      some[k].data = static_cast<const char*>(operands[k].data) + row * operands[k].row * sizes[k];
    }
    call(some, Extent{1, std::min(together, extent.rows - row) * extent.count});
  }
  return true;
}

// Calls `call(operands, extent)` for all elements of a nest, on all threads; operand 0 is written.
template <size_t kOperands, typename Call>
void ForOperands(const Nest<kOperands>& nest, const ElementSizes<kOperands>& sizes,
                 double element_ns, char* const* addresses, const Call& call) {
  const auto along = nest.back().strides, rows_of = RowStrides(nest);
  ForAllRows(nest, element_ns, [&](const auto& offsets, int64_t rows, int64_t count) {
    std::array<Strided, kOperands> operands;
    for (size_t k = 0; k < kOperands; ++k) {
      operands[k] = {addresses[k] + offsets[k] * sizes[k], along[k], rows_of[k]};
    }
    const Extent extent{rows, count};
    if (count >= kShortRow || !CallOnLongRows(operands, sizes, extent, call)) {
      call(operands, extent);
    }
  });
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_OPERANDS_H_
