// The executable of a concatenation of short rows; see joined_rows.h.
#include "onednn/joined_rows/joined_rows.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "onednn/layout.h"

namespace mxplan::joined_rows {
namespace {

using dnnl::memory;

constexpr int64_t kLongRow = 4096;             // bytes of a piece that are worth a start
constexpr int64_t kBytesOfThread = 128 << 10;  // fewer are moved before another thread has woken
constexpr int64_t kLine = 64;

struct Piece {
  int64_t begin = 0, bytes = 0;  // in a row of dst
};

// Whole lines of 64 bytes are moves of a known number of vectors; the compiler sees no call.
void CopyRows(const Piece& piece, const char* src, char* dst, int64_t row, int64_t begin,
              int64_t end) {
  dst += piece.begin + begin * row;
  src += begin * piece.bytes;
  const int64_t whole = piece.bytes / kLine * kLine;
  const auto rest = static_cast<size_t>(piece.bytes - whole);
  for (int64_t i = begin; i < end; ++i, dst += row, src += piece.bytes) {
    for (int64_t at = 0; at < whole; at += kLine) std::memcpy(dst + at, src + at, kLine);
    if (rest != 0) std::memcpy(dst + whole, src + whole, rest);
  }
}

class JoinedRowsStage final : public MemoryStage {
 public:
  JoinedRowsStage(int64_t rows, std::vector<Piece> pieces,
                  const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), rows_(rows), pieces_(std::move(pieces)) {
    row_ = pieces_.back().begin + pieces_.back().bytes;
    threads_ = static_cast<int>(
        std::clamp<int64_t>(rows_ * row_ / kBytesOfThread, 1, omp_get_max_threads()));
  }

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    if (threads_ == 1) return Copy(memories, 0, rows_);
#pragma omp parallel num_threads(threads_)
    {
      const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      Copy(memories, rows_ * thread / threads, rows_ * (thread + 1) / threads);
    }
  }

 private:
  // Dst is the first of the memories, the pieces follow.
  void Copy(const std::vector<dnnl_exec_arg_t>& memories, int64_t begin, int64_t end) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      CopyRows(pieces_[i], Data<char>(memories[i + 1]), Data<char>(memories[0]), row_, begin, end);
    }
  }

  int64_t rows_, row_ = 0;
  int threads_ = 1;
  std::vector<Piece> pieces_;
};

bool IsPlain(const memory::desc& desc) {
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_inner_nblks() == 0 &&
         desc.get_submemory_offset() == 0 && IsDense(desc);
}

// Axes of more than one element, the slowest first.
std::vector<size_t> OrderOf(const memory::desc& desc, const Dims& extents) {
  const Dims strides = desc.get_strides();
  std::vector<size_t> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] > 1) axes.push_back(i);
  }
  std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  return axes;
}

// Elements of a row of `desc`: the extents of `axis` and of the axes inside of it.
int64_t RowOf(const memory::desc& desc, const std::vector<size_t>& order, size_t axis) {
  const Dims dims = desc.get_dims();
  int64_t elements = 1;
  for (size_t at = order.size(); at-- > 0;) {
    elements *= dims[order[at]];
    if (order[at] == axis) return elements;
  }
  return 0;
}

}  // namespace

bool Build(StepBuilder* b, int64_t axis, const std::vector<int>& pieces) {
  if (!b->step().post_ops.empty() || b->Get("dst").IsAny() || b->Refuses(kName)) return false;
  const memory::desc dst = b->Desc("dst");
  const auto along = static_cast<size_t>(axis);
  if (!IsPlain(dst)) return false;
  const Dims extents = dst.get_dims();
  const std::vector<size_t> order = OrderOf(dst, extents);
  const int64_t row = RowOf(dst, order, along);
  if (row == 0) return false;
  int64_t elements = 1;
  for (int64_t extent : extents) elements *= extent;
  const auto item = static_cast<int64_t>(memory::data_type_size(dst.get_data_type()));
  std::vector<Piece> found;
  std::vector<MemoryArgument> arguments = {{0, Argument::Source::kValue, b->Id("dst"), dst}};
  int64_t begin = 0;
  for (int value : pieces) {
    const memory::desc desc = b->Desc(value);
    if (!IsPlain(desc) || desc.get_data_type() != dst.get_data_type()) return false;
    Dims others = extents;  // a piece of one element along the axis has it where dst does
    others[along] = desc.get_dims()[along];
    std::vector<size_t> expected;
    for (size_t one : order) {
      if (others[one] > 1) expected.push_back(one);
    }
    if (OrderOf(desc, others) != expected) return false;
    const int64_t bytes = row / extents[along] * others[along] * item;
    if (bytes > kLongRow) return false;
    found.push_back({begin, bytes});
    arguments.push_back({0, Argument::Source::kValue, value, desc});
    begin += bytes;
  }
  b->AddStage(std::make_unique<JoinedRowsStage>(elements / row, std::move(found), arguments),
              kName);
  return true;
}

}  // namespace mxplan::joined_rows
