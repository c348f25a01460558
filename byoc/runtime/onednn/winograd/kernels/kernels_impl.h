// The transforms of onednn/winograd/kernels/kernels.h over vectors of MXPLAN_LANES channels;
// included once for each instruction set, by a file that names it.
//
// A vector holds the same pixel of several channels, so a transform is sums of whole vectors and
// needs no shuffles.  The compiler's vector types serve all instruction sets alike.  Everything
// here has internal linkage, and headers come before the instruction set is named: no inline
// function of one set may end up in code of another.
#include "onednn/post_ops/apply_impl.h"
#include "onednn/vectors/shorts_impl.h"
#include "onednn/winograd/kernels/filters_impl.h"
#include "onednn/winograd/kernels/kernels.h"
#include "onednn/winograd/kernels/variants_impl.h"

namespace mxplan::winograd {
namespace {

// Numbers of images, float or Short, in float32: all that transforms compute in.
MXPLAN_INLINE Vec LoadNumbers(const float* from) { return Load(from); }
MXPLAN_INLINE Vec LoadNumbers(const Short* from) { return Widened(LoadShort(from, kLanes)); }
MXPLAN_INLINE Vec LoadNumbers(const float* from, int64_t count) { return LoadSome(from, count); }
MXPLAN_INLINE Vec LoadNumbers(const Short* from, int64_t count) {
  return Widened(LoadShort(from, count));
}
MXPLAN_INLINE void StoreNumbers(float* to, Vec x) { Store(to, x); }
MXPLAN_INLINE void StoreNumbers(Short* to, Vec x) { StoreShort(to, kLanes, x); }
MXPLAN_INLINE void StoreNumbers(float* to, Vec x, int64_t count) { StoreSome(to, x, count); }
MXPLAN_INLINE void StoreNumbers(Short* to, Vec x, int64_t count) { StoreShort(to, count, x); }

// Distance of channel `channel` of all from the first.
MXPLAN_INLINE int64_t OffsetOf(const Images& images, int64_t channel) {
  return (channel >> images.block_bits) * images.block +
         (channel & ((int64_t{1} << images.block_bits) - 1));
}

// Steps through tiles in their order without dividing for each.
struct Cursor {
  int64_t image, row, column;
  Cursor(const Grid& grid, int64_t tile)
      : image(tile / (grid.rows * grid.columns)),
        row(tile / grid.columns % grid.rows),
        column(tile % grid.columns) {}
  MXPLAN_INLINE void Next(const Grid& grid) {
    if (++column < grid.columns) return;
    column = 0;
    if (++row < grid.rows) return;
    row = 0;
    ++image;
  }
};

// One patch of kLanes channels.  `offsets` are those of its pixels, negative where src has none.
template <typename F, bool kBorder, typename Number>
MXPLAN_INLINE void InputPatch(const Number* src, const int64_t (*offsets)[F::kPatch], int64_t count,
                              int64_t next, float* patch, int64_t element) {
  Vec columns[F::kPatch][F::kPatch];
#pragma GCC unroll 6
  for (int x = 0; x < F::kPatch; ++x) {
    Vec pixels[F::kPatch], transformed[F::kPatch];
#pragma GCC unroll 6
    for (int y = 0; y < F::kPatch; ++y) {
      int64_t offset = offsets[y][x];
      if (kBorder) {
        pixels[y] = offset < 0        ? Vec{}
                    : count == kLanes ? LoadNumbers(src + offset)
                                      : LoadNumbers(src + offset, count);
      } else {
        pixels[y] = LoadNumbers(src + offset);
        if (x >= F::kPatch - F::kTile) __builtin_prefetch(src + offset + F::kTile * next);
      }
    }
    F::Input(pixels, transformed);
#pragma GCC unroll 6
    for (int y = 0; y < F::kPatch; ++y) columns[y][x] = transformed[y];
  }
#pragma GCC unroll 6
  for (int y = 0; y < F::kPatch; ++y) {
    Vec transformed[F::kPatch];
    F::Input(columns[y], transformed);
#pragma GCC unroll 6
    for (int x = 0; x < F::kPatch; ++x) {
      Store(patch + (y * F::kPatch + x) * element, transformed[x]);
    }
  }
}

template <typename F, typename Number>
void TransformInput(const Images& src, const void* data, const Grid& grid, int64_t begin,
                    int64_t end, const Patches& patches) {
  Cursor at(grid, begin);
  for (int64_t tile = begin; tile < end; ++tile, at.Next(grid)) {
    int64_t top = at.row * F::kTile - grid.top, left = at.column * F::kTile - grid.left;
    bool border =
        top < 0 || left < 0 || top + F::kPatch > src.height || left + F::kPatch > src.width;
    int64_t offsets[F::kPatch][F::kPatch];
    for (int y = 0; y < F::kPatch; ++y) {
      for (int x = 0; x < F::kPatch; ++x) {
        bool inside = top + y >= 0 && top + y < src.height && left + x >= 0 && left + x < src.width;
        offsets[y][x] = inside ? (top + y) * src.row + (left + x) * src.column : -1;
      }
    }
    const Number* image =
        static_cast<const Number*>(data) + at.image * src.image + OffsetOf(src, src.first_channel);
    float* patch = patches.data + (tile - begin) * patches.tile;
    for (int64_t c = 0; c < RoundUpToColumns(src.channels); c += kLanes) {
      const Number* block = image + OffsetOf(src, c);
      int64_t count = src.stored - c < kLanes ? src.stored - c : kLanes;
      if (border || count < kLanes) {
        InputPatch<F, true>(block, offsets, count, src.column, patch + c, patches.element);
      } else {
        InputPatch<F, false>(block, offsets, count, src.column, patch + c, patches.element);
      }
    }
  }
}

// One tile of kLanes channels as it goes through the post-ops; `rows` and `columns` of it are
// dst's.
template <typename F, bool kSome, typename Number>
struct OutputTile {
  Vec pixels[F::kTile][F::kTile];
  int64_t rows, columns, count;

  template <typename Any>
  static MXPLAN_INLINE Vec Read(const Any* from, int64_t count) {
    return kSome ? LoadNumbers(from, count) : LoadNumbers(from);
  }

  MXPLAN_INLINE void Transform(const float* patch, int64_t element) {
    Vec middle[F::kTile][F::kPatch];
#pragma GCC unroll 6
    for (int x = 0; x < F::kPatch; ++x) {
      Vec column[F::kPatch], transformed[F::kTile];
#pragma GCC unroll 6
      for (int y = 0; y < F::kPatch; ++y) column[y] = Load(patch + (y * F::kPatch + x) * element);
      F::Output(column, transformed);
#pragma GCC unroll 4
      for (int y = 0; y < F::kTile; ++y) middle[y][x] = transformed[y];
    }
#pragma GCC unroll 4
    for (int y = 0; y < F::kTile; ++y) F::Output(middle[y], pixels[y]);
  }

  MXPLAN_INLINE void Add(Vec x) {
#pragma GCC unroll 4
    for (auto& row : pixels) {
#pragma GCC unroll 4
      for (Vec& pixel : row) pixel += x;
    }
  }

  // An operator whose second operand, if it has one, is the same for all pixels.
  MXPLAN_INLINE void ApplyToAll(const PostOp& op, Vec other) {
    for (auto& row : pixels) {
      for (Vec& pixel : row) pixel = Apply(op, pixel, other);
    }
  }

  // An operator whose second operand is stored as dst is.
  MXPLAN_INLINE void ApplyEach(const PostOp& op, const Number* from, int64_t row, int64_t column) {
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        pixels[y][x] = Apply(op, pixels[y][x], Read(from + y * row + x * column, count));
      }
    }
  }

  MXPLAN_INLINE void Write(Number* to, int64_t row, int64_t column, bool padded) {
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        Number* pixel = to + y * row + x * column;
        if (!kSome) {
          StoreNumbers(pixel, pixels[y][x]);
          __builtin_prefetch(pixel + F::kTile * column, 1);
        } else {
          if (padded) StoreNumbers(pixel, Vec{});
          StoreNumbers(pixel, pixels[y][x], count);
        }
      }
    }
  }
};

template <typename F, bool kSome, typename Number>
MXPLAN_INLINE void OutputBlock(const Images& dst, Number* to, int64_t to_dst, int64_t channel,
                               const float* patch, int64_t element, int64_t rows, int64_t columns,
                               const Output& output) {
  OutputTile<F, kSome, Number> tile;
  tile.rows = rows;
  tile.columns = columns;
  tile.count = dst.channels - channel;
  const int64_t of_all = dst.first_channel + channel;
  tile.Transform(patch, element);
  if (output.bias) tile.Add(tile.Read(output.bias + of_all, tile.count));
  for (int i = 0; i < output.post_op_count; ++i) {
    const PostOp& op = output.post_ops[i];
    if (op.code == PostOp::Code::kSum) {
      tile.ApplyEach(op, to, dst.row, dst.column);
    } else if (!op.data) {
      tile.ApplyToAll(op, Vec{});
    } else if (op.per_channel) {
      tile.ApplyToAll(op, tile.Read(op.data + of_all, tile.count));
    } else {
      tile.ApplyEach(op, reinterpret_cast<const Number*>(op.data) + to_dst, dst.row, dst.column);
    }
  }
  tile.Write(to, dst.row, dst.column, dst.padded);
}

// Vectors of the last block behind the last channel, where a block has several vectors.
template <typename Number>
MXPLAN_INLINE void ClearTail(const Images& dst, Number* to, int64_t rows, int64_t columns) {
  for (int64_t c = (dst.channels + kLanes - 1) / kLanes * kLanes; c < dst.stored; c += kLanes) {
    Number* tail = to + OffsetOf(dst, c);
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x)
        StoreNumbers(tail + y * dst.row + x * dst.column, Vec{});
    }
  }
}

template <typename F, typename Number>
void TransformOutput(const Images& dst, void* data, const Grid& grid, int64_t begin, int64_t end,
                     const Patches& patches, const Output& output) {
  Cursor at(grid, begin);
  auto* to = static_cast<Number*>(data);
  for (int64_t tile = begin; tile < end; ++tile, at.Next(grid)) {
    int64_t top = at.row * F::kTile, left = at.column * F::kTile;
    int64_t rows = dst.height - top < F::kTile ? dst.height - top : F::kTile;
    int64_t columns = dst.width - left < F::kTile ? dst.width - left : F::kTile;
    int64_t origin =
        OffsetOf(dst, dst.first_channel) + at.image * dst.image + top * dst.row + left * dst.column;
    const float* patch = patches.data + (tile - begin) * patches.tile;
    for (int64_t c = 0; c < dst.channels; c += kLanes) {
      int64_t offset = origin + OffsetOf(dst, c);
      if (dst.channels - c >= kLanes) {
        OutputBlock<F, false>(dst, to + offset, offset, c, patch + c, patches.element, rows,
                              columns, output);
      } else {
        OutputBlock<F, true>(dst, to + offset, offset, c, patch + c, patches.element, rows, columns,
                             output);
      }
    }
    if (dst.padded) ClearTail(dst, to + origin, rows, columns);
  }
}

template <typename F, typename Number>
Kernels Of() {
  return {TransformInput<F, Number>, TransformOutput<F, Number>, TransformFilters<F>, kLanes};
}

template <typename Number>
Kernels Get(Variant variant) {
  switch (variant) {
    case Variant::kF2:
      return Of<F2, Number>();
    case Variant::kF4:
      return Of<F4, Number>();
    case Variant::kF2Of5:
      return Of<F2Of5, Number>();
  }
  return {};
}

}  // namespace
}  // namespace mxplan::winograd
