// Dense sums, panel by panel; included behind result_impl.h, once for each instruction set, by
// what defines the sums of one panel.
#include "onednn/vectors/counts_impl.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kBytesTogether = 128 << 10;  // of src and dst
constexpr int64_t kPixelsTogether = 48;        // at least: each time a panel begins costs one more
constexpr int64_t kVectorsOfBlock = kLane / kLanes;
constexpr int64_t kFactors = kLanes * kNumbers;  // that are loaded together

// The sums of pixels [begin, end) and of some channels, at most kVectors of them; `shared` by the
// panels of a call.
template <int kVectors, typename Shared>
void RunPanel(const Dense& product, int64_t begin, int64_t end, int64_t channel, int64_t channels,
              Shared* shared);

// The weights of a panel, which begins with a block, at a depth of a window's row.
template <int kVectors>
struct Weights {
  const int8_t* data;
  int64_t block;
  MXPLAN_INLINE Ints operator()(int64_t group, int v) const {
    const int64_t place = group * kVectorsOfBlock + v % kVectorsOfBlock;
    return LoadFactors(data + v / kVectorsOfBlock * block + place * kFactors);
  }
  MXPLAN_INLINE Weights OfRow(const Dense& product, int64_t row) const {
    return {data + row * product.weights_row, block};
  }
};

// The beginning of sums, which takes off the part of `zero`.
template <int kVectors>
MXPLAN_INLINE void Start(const Dense& product, const Weights<kVectors>& weights, int32_t zero,
                         Ints* start) {
  for (int v = 0; v < kVectors; ++v) start[v] = Ints{};
  if (zero == 0) return;
  const Ints ones = AllOf(0x01010101);
  const int64_t groups = product.weights_block / (kLane * kNumbers);
  for (int64_t group = 0; group < groups; ++group) {
    for (int v = 0; v < kVectors; ++v) start[v] = Dot(start[v], ones, weights(group, v));
  }
  for (int v = 0; v < kVectors; ++v) start[v] *= -zero;
}

// Every panel of some pixels, which stay in cache meanwhile.
template <typename Shared>
void RunDense(const Dense& product, int64_t begin, int64_t end, int64_t first_channel,
              int64_t channels) {
  if (begin == end) return;  // a thread's share of few pixels
  Shared shared;
  constexpr int64_t kMost = kMostVectors / kVectorsOfBlock;
  const int64_t blocks = (channels + kLane - 1) / kLane;
  const int64_t panels = (blocks + kMost - 1) / kMost;  // of about the same number of blocks
  const int64_t bytes = std::min(product.depth, product.src_pixel) + product.result.pixel;
  const int64_t together = std::max(kBytesTogether / bytes, kPixelsTogether);
  // Of about the same number of pixels: for each part all weights are read.
  const int64_t parts = std::max<int64_t>((end - begin + together / 2) / together, 1);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t from = begin + (end - begin) * part / parts;
    const int64_t to = begin + (end - begin) * (part + 1) / parts;
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t first = blocks * p / panels * kLane;
      const int64_t last = std::min(blocks * (p + 1) / panels * kLane, channels);
      WithConstant<kMostVectors>((last - first + kLanes - 1) / kLanes, [&](auto some) {
        RunPanel<some>(product, from, to, first_channel + first, last - first, &shared);
      });
    }
  }
}

}  // namespace
}  // namespace mxplan::integers
