// The stage that finds a batch's statistics; see statistics.h.
#include "onednn/statistics/statistics.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/statistics/kernels.h"

namespace mxplan::statistics {
namespace {

using dnnl::memory;

constexpr int64_t kBytesOfThread = 128 << 10;  // fewer are read before another thread has woken

// Channels in tiles of such as stand side by side; of one channel where its numbers do.
struct Tiling {
  Rows rows;
  int64_t channels = 0, stride = 0;  // from one tile to the next
  int width = 1;
  bool padded = false;  // the last tile is as wide as the others
};

// Channels that a thread goes over at once where all of a position stand side by side.
int WidthOf(int64_t channels, int64_t threads) {
  const int64_t share = (channels + threads - 1) / threads;
  const int64_t vectors = (share + kMostLanes - 1) / kMostLanes;
  return static_cast<int>(std::min<int64_t>(vectors * kMostLanes, kMostChannels));
}

std::optional<Tiling> TilingOf(const memory::desc& src, int64_t threads) {
  if (src.get_data_type() != memory::data_type::f32 ||
      src.get_format_kind() != memory::format_kind::blocked || src.get_submemory_offset() != 0) {
    return std::nullopt;
  }
  const Dims dims = src.get_dims(), strides = src.get_strides();
  Tiling found;
  found.channels = dims[1];
  found.rows.outer = dims[0];
  found.rows.outer_stride = strides[0];
  found.rows.inner = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) found.rows.inner *= dims[axis];
  if (src.get_inner_nblks() == 1 && src.get_inner_idxs()[0] == 1) {
    const int64_t block = src.get_inner_blks()[0];
    if (block != 16 && block != 8) return std::nullopt;
    found.width = static_cast<int>(block);
    found.padded = true;
    found.stride = strides[1];
    found.rows.step = PlaceStride(dims, strides, block);
    if (found.rows.step != block) return std::nullopt;
  } else if (src.get_inner_nblks() == 0) {
    const int64_t step = PlaceStride(dims, strides, found.channels);
    if (step == 1 && found.rows.inner > 1) {
      found.stride = strides[1];
    } else if (strides[1] == 1 && step >= found.channels) {
      found.width = WidthOf(found.channels, threads);
      found.stride = found.width;
    } else {
      return std::nullopt;
    }
    found.rows.step = step;
  } else {
    return std::nullopt;
  }
  if (found.rows.outer_stride == found.rows.inner * found.rows.step) {
    found.rows.inner *= found.rows.outer;
    found.rows.outer = 1;
  }
  return found;
}

MomentsKernel SelectKernel() { return ForThisIsa(MomentsAvx512, MomentsAvx2, MomentsBase); }

class StatisticsStage final : public MemoryStage {
 public:
  StatisticsStage(const Tiling& tiling, int threads, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), tiling_(tiling), threads_(threads), kernel_(SelectKernel()) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    const int64_t width = tiling_.width;
    const int64_t tiles = (tiling_.channels + width - 1) / width;
    const float* src = Data(memories[0]);
    float *mean = Data(memories[1]), *variance = Data(memories[2]);
#pragma omp parallel for num_threads(threads_) if (threads_ > 1)
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first = tile * width;
      const float* numbers = src + tile * tiling_.stride;
      if (width == 1) {
        Channel(numbers, mean + first, variance + first);
      } else {
        Tile(numbers, std::min(width, tiling_.channels - first), mean + first, variance + first);
      }
    }
  }

 private:
  // Channels side by side: all of a block, padding included; elsewhere as many as there are.
  void Tile(const float* numbers, int64_t channels, float* mean, float* variance) const {
    Moments found;
    kernel_(tiling_.rows, numbers, tiling_.padded ? tiling_.width : static_cast<int>(channels),
            &found);
    for (int64_t at = 0; at < channels; ++at) {
      mean[at] = static_cast<float>(found.mean[at]);
      variance[at] = Variance(found.squares[at], found.count);
    }
  }

  // One channel whose numbers stand side by side: lanes are every 16th number, the rest one by one.
  void Channel(const float* numbers, float* mean, float* variance) const {
    Rows vectors = tiling_.rows, rest = tiling_.rows;
    vectors.inner = tiling_.rows.inner / kMostLanes;
    vectors.step = kMostLanes;
    rest.inner = tiling_.rows.inner % kMostLanes;
    Moments lanes, ends;
    kernel_(vectors, numbers, kMostLanes, &lanes);
    kernel_(rest, numbers + vectors.inner * kMostLanes, 1, &ends);
    const auto more = static_cast<double>(lanes.count), last = static_cast<double>(ends.count);
    double sum = 0;
    for (int lane = 0; lane < kMostLanes; ++lane) sum += lanes.mean[lane];
    const double middle = (sum * more + ends.mean[0] * last) / (kMostLanes * more + last);
    auto about = [middle](double squares, double from, double count) {
      return squares + (from - middle) * (from - middle) * count;
    };
    double squares = about(ends.squares[0], ends.mean[0], last);
    for (int lane = 0; lane < kMostLanes; ++lane) {
      squares += about(lanes.squares[lane], lanes.mean[lane], more);
    }
    *mean = static_cast<float>(middle);
    *variance = Variance(squares, kMostLanes * lanes.count + ends.count);
  }

  static float Variance(double squares, int64_t count) {
    return static_cast<float>(std::max(squares, 0.0) / static_cast<double>(count));
  }

  Tiling tiling_;
  int threads_;
  MomentsKernel kernel_;
};

}  // namespace

bool Build(StepBuilder* b) {
  const memory::desc src = b->Fixed("src");
  if (IsEmpty(src)) return false;
  const auto bytes = static_cast<int64_t>(src.get_size());
  const auto threads = std::min<int64_t>(omp_get_max_threads(), bytes / kBytesOfThread + 1);
  const std::optional<Tiling> tiling = TilingOf(src, threads);
  if (!tiling || b->Refuses(kName)) return false;
  std::vector<MemoryArgument> arguments;
  for (const char* role : {"src", "batch_mean", "batch_variance"}) {
    arguments.push_back({0, Argument::Source::kValue, b->Id(role), b->Fixed(role)});
  }
  b->AddStage(std::make_unique<StatisticsStage>(*tiling, static_cast<int>(threads), arguments),
              kName);
  return true;
}

}  // namespace mxplan::statistics
