// Reordering constants; see mapped_reorder.h.
#include "onednn/packing/mapped_reorder.h"

#include <algorithm>

#include "onednn/engine.h"
#include "onednn/layout.h"
#include "weights/constant.h"

namespace mxplan {
namespace {

using dnnl::memory;

void ReorderWhole(const memory::desc& from, const char* src, const memory::desc& to, char* dst) {
  memory source(from, CpuEngine(), const_cast<char*>(src));  // oneDNN has no const memory
  memory target(to, CpuEngine(), dst);
  dnnl::reorder(source, target).execute(ThreadStream(), source, target);
  ThreadStream().wait();
}

// Rows of the axis that is outermost in memory: all bytes of a row stand together.
struct Rows {
  int axis = -1;  // none: `from` cannot be cut, or need not be
  int64_t count = 0, at_a_time = 0;
  int64_t stride = 0;  // bytes
};

Rows CutIntoRows(const memory::desc& from, const memory::desc& to) {
  Rows rows;
  bool plain = from.get_format_kind() == memory::format_kind::blocked &&
               from.get_inner_nblks() == 0 && from.get_submemory_offset() == 0 && IsDense(from);
  // Sums of the weights that stand behind them are made of all at once.
  bool blocked = to.get_format_kind() == memory::format_kind::blocked && IsDense(to);
  if (!plain || !blocked || static_cast<int64_t>(from.get_size()) <= kSliceBytes) return rows;
  Dims strides = from.get_strides();
  rows.axis = static_cast<int>(std::max_element(strides.begin(), strides.end()) - strides.begin());
  rows.count = from.get_dims()[rows.axis];
  rows.stride =
      strides[rows.axis] * static_cast<int64_t>(memory::data_type_size(from.get_data_type()));
  int64_t block = 1;  // of the axis in `to`, which cannot be cut
  for (int i = 0; i < to.get_inner_nblks(); ++i) {
    if (to.get_inner_idxs()[i] == rows.axis) block *= to.get_inner_blks()[i];
  }
  rows.at_a_time = std::max<int64_t>(kSliceBytes / rows.stride / block, 1) * block;
  if (rows.at_a_time >= rows.count) rows.axis = -1;
  return rows;
}

}  // namespace

void Reorder(const memory::desc& from, const char* src, bool mapped, const memory::desc& to,
             char* dst) {
  if (IsEmpty(from)) return;
  Rows rows = mapped ? CutIntoRows(from, to) : Rows{};
  if (rows.axis < 0) {
    ReorderWhole(from, src, to, dst);
    if (mapped) DropPages(src, static_cast<int64_t>(from.get_size()));
    return;
  }
  Dims dims = from.get_dims();
  Dims begin(dims.size(), 0);
  auto element = static_cast<int64_t>(memory::data_type_size(to.get_data_type()));
  for (int64_t row = 0; row < rows.count; row += rows.at_a_time) {
    dims[rows.axis] = std::min(rows.at_a_time, rows.count - row);
    begin[rows.axis] = row;
    const char* piece = src + row * rows.stride;
    memory::desc plain(dims, from.get_data_type(), from.get_strides());
    memory::desc slice = to.submemory_desc(dims, begin);
    char* place = dst;
    if (row + rows.at_a_time < rows.count) {
      // The place of a whole slice goes into the address, so that all of them are one primitive.
      place += slice.get_submemory_offset() * element;
      begin[rows.axis] = 0;
      slice = to.submemory_desc(dims, begin);
    }
    ReorderWhole(plain, piece, slice, place);
    DropPages(piece, dims[rows.axis] * rows.stride);
  }
}

}  // namespace mxplan
