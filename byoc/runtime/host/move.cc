// Moving elements; see move.h.
#include "host/move.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "host/kernels/kernels.h"

namespace mxplan::host {
namespace {

constexpr double kElementNs = 0.2;
constexpr double kByteNs = 0.02, kRowNs = 1.5;  // of neighbours that are moved together
constexpr double kApartNs = 1.0;                // where elements are read far from each other
constexpr int64_t kLong = 32;                   // neighbours that are copied as bytes
constexpr int64_t kTile = 32;                   // rows and columns that are transposed at once

template <typename T>
void TransposeTile(const T* src, int64_t src_stride, T* dst, int64_t dst_stride, int64_t rows,
                   int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      dst[row * dst_stride + column] = src[column * src_stride + row];
    }
  }
}

template <typename Of>
void WithBytes(int64_t element_bytes, const Of& of) {
  if (element_bytes == 1) return of(uint8_t());
  if (element_bytes == 2) return of(uint16_t());
  if (element_bytes == 4) return of(uint32_t());
  of(uint64_t());
}

}  // namespace

Move::Move(std::vector<Places> axes, int64_t element_bytes)
    : element_bytes_(element_bytes), axes_(std::move(axes)) {
  if (axes_.empty()) axes_.push_back({1, {}, {}});
  Nest<2> loops;
  for (const Places& axis : axes_) {
    strided_ = strided_ && axis.dst.table.empty() && axis.src.table.empty();
    first_dst_ += axis.dst.first;
    first_src_ += axis.src.first;
    loops.push_back({axis.count, {axis.dst.stride, axis.src.stride}});
  }
  nest_ = Joined(std::move(loops));
  // A dst with an order of its own is written element by element.
  strided_ = strided_ && (nest_.back().strides[0] == 1 || nest_.back().extent <= 1);
  auto step = [](const Places& axis) {
    return axis.count > 1 ? axis.dst.At(1) - axis.dst.At(0) : 0;
  };
  std::stable_sort(axes_.begin(), axes_.end(),
                   [&](const Places& a, const Places& b) { return step(a) > step(b); });
  if (strided_) return;
  DropSingleAxes();
  const Places& inner = axes_.back();
  for (int64_t i = 0; i < inner.count; ++i) {
    const int64_t to = inner.dst.At(i), from = inner.src.At(i);
    const bool follows = !stretches_.empty() &&
                         to == stretches_.back().dst + stretches_.back().count &&
                         from == stretches_.back().src + stretches_.back().count;
    if (follows) {
      ++stretches_.back().count;
    } else {
      stretches_.push_back({to, from, 1});
    }
  }
}

// An axis of one place has no neighbours, though its distance to them is the least.
void Move::DropSingleAxes() {
  first_dst_ = first_src_ = 0;
  auto drop = [&](const Places& axis) {
    if (axis.count != 1) return false;
    first_dst_ += axis.dst.At(0);
    first_src_ += axis.src.At(0);
    return true;
  };
  axes_.erase(std::remove_if(axes_.begin(), axes_.end(), drop), axes_.end());
  if (axes_.empty()) axes_.push_back({1, {}, {}});
}

void Move::Run(const char* src, char* dst) const {
  if (Elements(nest_) == 0) return;
  if (!strided_) return RunByTables(src, dst);
  src += first_src_ * element_bytes_;
  dst += first_dst_ * element_bytes_;
  const int64_t stride = nest_.back().strides[1];
  if (std::abs(stride) > 4 && nest_.size() > 1) return RunTransposed(src, dst);
  const auto count = static_cast<double>(nest_.back().extent);
  const bool together = stride == 1 || stride == 0;
  CopyRows(src, dst,
           together ? kByteNs * static_cast<double>(element_bytes_) + kRowNs / count : kElementNs);
}

void Move::CopyRows(const char* src, char* dst, double element_ns) const {
  const int64_t stride = nest_.back().strides[1];
  const auto rows_of = RowStrides(nest_);
  ForAllRows(nest_, element_ns, [&](const auto& offsets, int64_t rows, int64_t count) {
    KernelsHere().copy(element_bytes_, {src + offsets[1] * element_bytes_, stride, rows_of[1]},
                       {dst + offsets[0] * element_bytes_, rows_of[0]}, {rows, count});
  });
}

// The innermost loop, along which dst is written, and the one along which src has its elements
// nearest to each other are rows and columns of a matrix that is transposed in tiles.
void Move::RunTransposed(const char* src, char* dst) const {
  const Loop<2> inner = nest_.back();
  Nest<2> outer(nest_.begin(), nest_.end() - 1);
  auto nearest = std::min_element(outer.begin(), outer.end(), [](const auto& a, const auto& b) {
    return std::abs(a.strides[1]) < std::abs(b.strides[1]);
  });
  if (nearest->strides[1] != 1) return CopyRows(src, dst, kApartNs);
  const Loop<2> rows = *nearest;
  outer.erase(nearest);
  if (outer.empty()) outer.push_back({});
  const int64_t bands = (rows.extent + kTile - 1) / kTile;
  const double band_ns = kApartNs * static_cast<double>(kTile * inner.extent);
  WithBytes(element_bytes_, [&](auto zero) {
    using T = decltype(zero);
    const T* from = reinterpret_cast<const T*>(src);
    T* to = reinterpret_cast<T*>(dst);
    ParallelFor(Elements(outer) * bands, band_ns, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        ForEach(outer, at / bands, [&](const auto& offsets) {
          const int64_t row = at % bands * kTile, count = std::min(kTile, rows.extent - row);
          for (int64_t column = 0; column < inner.extent; column += kTile) {
            TransposeTile(from + offsets[1] + row + column * inner.strides[1], inner.strides[1],
                          to + offsets[0] + row * rows.strides[0] + column, rows.strides[0], count,
                          std::min(kTile, inner.extent - column));
          }
        });
      }
    });
  });
}

void Move::RunByTables(const char* src, char* dst) const {
  const Places& inner = axes_.back();
  const size_t outer = axes_.size() - 1;
  int64_t rows = 1;
  for (size_t i = 0; i < outer; ++i) rows *= axes_[i].count;
  WithBytes(element_bytes_, [&](auto zero) {
    using T = decltype(zero);
    const double row_ns = kByteNs * static_cast<double>(sizeof(T) * inner.count) +
                          kApartNs * static_cast<double>(stretches_.size() + 4);
    ParallelFor(rows, row_ns, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = reinterpret_cast<const T*>(src) + first_src_;
        T* to = reinterpret_cast<T*>(dst) + first_dst_;
        int64_t rest = row;
        for (size_t i = outer; i-- > 0;) {
          const int64_t index = rest % axes_[i].count;
          rest /= axes_[i].count;
          from += axes_[i].src.At(index);
          to += axes_[i].dst.At(index);
        }
        for (const Stretch& some : stretches_) {
          const T* read = from + some.src;
          T* written = to + some.dst;
          if (some.count >= kLong) {
            std::memcpy(written, read, sizeof(T) * static_cast<size_t>(some.count));
          } else {
            for (int64_t i = 0; i < some.count; ++i) written[i] = read[i];
          }
        }
      }
    });
  });
}

}  // namespace mxplan::host
