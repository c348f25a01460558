// The executable of dynamic quantization: the range of all numbers, and then these as integers;
// see kernels.h.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "onednn/dynamic_quantization/kernels.h"
#include "onednn/isa.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace dynamic_quantization {

Kernels SelectKernels() { return ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)(); }

}  // namespace dynamic_quantization

namespace {

using dynamic_quantization::Kernels;
using dynamic_quantization::Range;

// Fewer numbers are done before another thread would have been woken.
constexpr int64_t kNumbersOfThread = 1 << 15;
constexpr int kMostThreads = 256;
constexpr int64_t kWhole = 64;  // numbers that one thread takes at least, so that no line is shared

enum ArgumentIndex : size_t { kSrc, kDst, kScale, kZero, kArguments };

class DynamicQuantizationStage final : public MemoryStage {
 public:
  DynamicQuantizationStage(int64_t count, const Kernels& kernels,
                           const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        count_(count),
        kernels_(kernels),
        threads_(static_cast<int>(std::clamp<int64_t>(
            count / kNumbersOfThread, 1, std::min(omp_get_max_threads(), kMostThreads)))) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    std::array<void*, kArguments> data{};
    for (size_t i = 0; i < data.size(); ++i) {
      dnnl_memory_get_data_handle(memories[i].memory, &data.at(i));
    }
    const auto* src = static_cast<const float*>(data[kSrc]);
    auto* dst = static_cast<uint8_t*>(data[kDst]);
    auto* scale = static_cast<float*>(data[kScale]);
    auto* zero = static_cast<int32_t*>(data[kZero]);
    if (threads_ == 1) {
      Decide(kernels_.range(src, count_), scale, zero);
      kernels_.convert(src, count_, *scale, *zero, dst);
      return;
    }
    std::array<Range, kMostThreads> ranges;
#pragma omp parallel num_threads(threads_)
    {
      const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      const int64_t first = Begin(thread, threads), count = Begin(thread + 1, threads) - first;
      ranges.at(static_cast<size_t>(thread)) = kernels_.range(src + first, count);
#pragma omp barrier
#pragma omp single
      {
        Range all;
        for (int64_t i = 0; i < threads; ++i) {
          const Range& range = ranges.at(static_cast<size_t>(i));
          all.least = std::min(all.least, range.least);
          all.largest = std::max(all.largest, range.largest);
        }
        Decide(all, scale, zero);
      }
      kernels_.convert(src + first, count, *scale, *zero, dst + first);
    }
  }

 private:
  int64_t Begin(int64_t thread, int64_t threads) const {
    return std::min(count_, (count_ * thread / threads + kWhole - 1) / kWhole * kWhole);
  }

  static void Decide(const Range& range, float* scale, int32_t* zero) {
    constexpr float kSteps = 255;
    const float way = range.largest - range.least;
    *scale = way > 0 ? way / kSteps : 1.0F;
    const float below = -range.least / *scale;  // no number where the way is infinite
    *zero = static_cast<int32_t>(std::nearbyintf(below > 0 ? std::min(below, kSteps) : 0.0F));
  }

  int64_t count_;
  Kernels kernels_;
  int threads_;
};

int64_t CountOf(const dnnl::memory::desc& desc) {
  int64_t count = 1;
  for (int64_t extent : desc.get_dims()) count *= extent;
  return count;
}

}  // namespace

void BuildDynamicQuantization(StepBuilder* b) {
  const dnnl::memory::desc src = b->Fixed("src"), dst = b->FixedLike("dst", src);
  const int64_t count = CountOf(src);
  const bool dense = src.get_inner_nblks() == 0 && dst.get_inner_nblks() == 0 &&
                     static_cast<int64_t>(src.get_size() / sizeof(float)) == count &&
                     src.get_strides() == dst.get_strides();
  if (!dense) {
    ThrowUnsupported("src in layout ", TagOf(src), ", dst in ", TagOf(dst),
                     ": expected one layout, without blocks or gaps");
  }
  const Kernels kernels = dynamic_quantization::SelectKernels();
  if (b->Refuses(kernels.name)) b->ThrowRefused();
  auto value = [&](const char* role) {
    return MemoryArgument{0, Argument::Source::kValue, b->Id(role), b->Fixed(role)};
  };
  const std::vector<MemoryArgument> arguments = {value("src"), value("dst"), value("made_scale"),
                                                 value("made_zero_point")};
  b->AddStage(std::make_unique<DynamicQuantizationStage>(count, kernels, arguments), kernels.name);
}

}  // namespace mxplan
