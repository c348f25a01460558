// The transforms of Winograd's minimal filtering, as plain functions on pointers.
//
//   F(2x2,3x3)   4x4 patches of src overlap by 2 and give 2x2 tiles of dst:  16 products for 36
//   F(4x4,3x3)   6x6 patches of src overlap by 2 and give 4x4 tiles of dst:  36 products for 144
//   F(2x2,5x5)   6x6 patches of src overlap by 4 and give 2x2 tiles of dst:  36 products for 100
//
//   patch d -> B' d B   (src)        filter g -> G g G'  (onednn/winograd/weights.h)
//   tile      A' m A    (dst)        m = sum over src channels of the two, element by element
//
// A patch has (tile + filter - 1)^2 elements; those of one number, for all tiles and channels of a
// chunk, are one matrix, so the sum over channels is a batch of matrix products.  B depends on the
// interpolation points alone: 0, 1, -1 and infinity for 4x4 patches; 0, 5/8, -5/8, 3/2, -3/2 and
// infinity for 6x6 ones, where the error is less than half of that of the usual 1 and 2 for
// F(4x4,3x3), and the least of the pairs tried for F(2x2,5x5) (all constants are exact in float32).
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_KERNELS_H_

#include <cstdint>

#include "onednn/post_ops/codes.h"

namespace mxplan::winograd {

enum class Variant : uint8_t { kF2, kF4, kF2Of5 };  // F(2x2,3x3), F(4x4,3x3), F(2x2,5x5)

constexpr int64_t TileSize(Variant variant) { return variant == Variant::kF4 ? 4 : 2; }
constexpr int64_t FilterSize(Variant variant) { return variant == Variant::kF2Of5 ? 5 : 3; }
constexpr int64_t PatchElements(Variant variant) {
  int64_t size = TileSize(variant) + FilterSize(variant) - 1;
  return size * size;
}

// Rows of patches are padded to multiples of so many channels, whatever the images' blocks.
constexpr int64_t kColumns = 16;
constexpr int64_t RoundUpToColumns(int64_t channels) {
  return (channels + kColumns - 1) / kColumns * kColumns;
}

// One group's channels of images whose channels are innermost, in whole or in blocks of
// 2^block_bits. Strides are in elements; channel c of all is in block c >> block_bits, at c %
// 2^block_bits of it.
struct Images {
  int64_t height = 0, width = 0, channels = 0;
  int64_t first_channel = 0;  // of the group, among all
  int64_t stored = 0;         // channels of the group with those that fill the last block
  int64_t image = 0, row = 0, column = 0, block = 0;
  int block_bits = 4;
  bool padded = false;  // the last block is stored whole, zeros behind the last channel
};

// Tiles are numbered along columns, then rows, then images.
struct Grid {
  int64_t rows = 0, columns = 0;  // of one image
  int64_t top = 0, left = 0;      // zeros above and before src
};

// Element e of tile t and channel c of a chunk is at e * element + t * tile + c.  Those of src are
// zero for the channels that fill the last block.
struct Patches {
  float* data = nullptr;
  int64_t element = 0, tile = 0;
};

// Places of one group's filters in a tensor of any blocked layout: the number of output channel k,
// input channel c and element t of the window is at outputs[k] + inputs[c] + window[t].
struct FilterPlaces {
  const int64_t* outputs = nullptr;
  const int64_t* inputs = nullptr;
  const int64_t* window = nullptr;
  int64_t output_count = 0, input_count = 0;
};

// Places of the transformed ones: that of patch element e, input channel c (a row) and output
// channel k (a column) is at e * element + rows[c] + columns[k].  kColumns columns from a multiple
// of kColumns on stand side by side.
struct MatrixPlaces {
  const int64_t* rows = nullptr;
  const int64_t* columns = nullptr;
  int64_t element = 0;
};

using post_ops::Output;
using post_ops::PostOp;

// Transforms tiles [begin, end); patches holds tile `begin` first.  Images are of numbers in
// float32, or in bfloat16; so are operands of post-ops that are stored as dst is.  Patches, biases
// and operands for each channel are float32.
struct Kernels {
  void (*input)(const Images& src, const void* data, const Grid& grid, int64_t begin, int64_t end,
                const Patches& patches);
  void (*output)(const Images& dst, void* data, const Grid& grid, int64_t begin, int64_t end,
                 const Patches& patches, const Output& output);
  // G g G' for the kColumns rows from `row` and as many columns from `column` on, both multiples of
  // kColumns; zeros where there are no such channels.  In float32.
  void (*filters)(const FilterPlaces& from, const float* filters, const MatrixPlaces& to,
                  float* matrices, int64_t row, int64_t column);
  int64_t lanes = 0;  // channels of a vector
};

// Blocks of images have at least as many channels as a vector of the kernels.
Kernels Avx512Kernels(Variant variant);
Kernels Avx2Kernels(Variant variant);
Kernels BaseKernels(Variant variant);
Kernels Avx512Bf16Kernels(Variant variant);

// Those of the instruction set that oneDNN was told to use, or found.
Kernels SelectKernels(Variant variant);
// Those for images in bfloat16; without functions where it has no instructions for them.
Kernels SelectShortKernels(Variant variant);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_KERNELS_KERNELS_H_
