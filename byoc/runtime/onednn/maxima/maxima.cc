// The executable of the largest of windows; see maxima.h.
#include "onednn/maxima/maxima.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "memory/buffer.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/maxima/kernels.h"

namespace mxplan::maxima {
namespace {

using dnnl::memory;

constexpr int64_t kBytesOfThread = 512 << 10;  // fewer are compared before another one has woken
constexpr size_t kMostAxes = 3;

class LargestStage final : public MemoryStage {
 public:
  LargestStage(const Windows& windows, int64_t pixels, const Kernel& kernel, Element element,
               int threads, int64_t scratch, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        windows_(windows),
        pixels_(pixels),
        run_(kernel.run[static_cast<size_t>(element)]),
        threads_(threads),
        scratch_(scratch) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    if (threads_ == 1) return Share(memories, 0, 1);
#pragma omp parallel num_threads(threads_)
    Share(memories, omp_get_thread_num(), omp_get_num_threads());
  }

 private:
  void Share(const std::vector<dnnl_exec_arg_t>& memories, int64_t thread, int64_t threads) const {
    uint8_t* scratch = scratch_ > 0 ? Data<uint8_t>(memories.back()) + thread * scratch_ : nullptr;
    run_(windows_, Data<uint8_t>(memories[0]), Data<uint8_t>(memories[1]),
         pixels_ * thread / threads, pixels_ * (thread + 1) / threads, scratch);
  }

  Windows windows_;
  int64_t pixels_;  // of all images
  Run run_;
  int threads_;
  int64_t scratch_;  // bytes of a thread
};

std::optional<Kernel> SelectKernel() {
  return ForThisIsa<std::optional<Kernel>>(Avx512Kernel(), Avx2Kernel(), std::nullopt);
}

std::optional<Element> ElementOf(const memory::desc& desc) {
  switch (desc.get_data_type()) {
    case memory::data_type::u8:
      return Element::kUnsigned;
    case memory::data_type::s8:
      return Element::kSigned;
    case memory::data_type::bf16:
      return Element::kShort;
    default:
      return std::nullopt;
  }
}

Windows WindowsOf(const Dims& src, const Dims& dst, int64_t item, const Geometry& geometry) {
  Windows windows;
  windows.pixel = src[1] * item;
  Axis* axes[kMostAxes] = {&windows.depth, &windows.height, &windows.width};
  const size_t count = src.size() - 2;
  for (size_t i = 0; i < count; ++i) {
    *axes[kMostAxes - count + i] = {src[i + 2],
                                    dst[i + 2],
                                    geometry.kernel[i],
                                    geometry.strides[i],
                                    geometry.dilates[i] + 1,
                                    geometry.padding[i]};
  }
  return windows;
}

int ThreadsFor(const Windows& of, int64_t pixels, int64_t src_bytes) {
  const int64_t rows = of.depth.window * of.height.window, columns = of.width.window;
  const int64_t compared = pixels * of.pixel * std::min(rows * columns, rows + columns);
  const int64_t wanted = std::max(compared, src_bytes) / kBytesOfThread;
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, pixels), 1, omp_get_max_threads()));
}

}  // namespace

bool Build(StepBuilder* b, const Geometry& geometry) {
  const std::optional<Kernel> kernel = SelectKernel();
  const memory::desc src = b->Desc("src");
  const std::optional<Element> element = ElementOf(src);
  if (!kernel || !element) return false;
  if (!b->step().post_ops.empty() || IsEmpty(src) || !IsChannelsLast(src)) return false;
  memory::desc dst = b->Desc("dst");
  if (dst.get_data_type() != src.get_data_type()) return false;
  if (b->Get("dst").IsAny()) {
    dst = MakeDesc(b->Get("dst").dims, src.get_data_type(), TagOf(src));
  }
  if (IsEmpty(dst) || !IsChannelsLast(dst) || b->Refuses(kernel->name)) return false;
  b->FixedLike("dst", src);
  const auto item = static_cast<int64_t>(memory::data_type_size(src.get_data_type()));
  const Windows windows = WindowsOf(src.get_dims(), dst.get_dims(), item, geometry);
  int64_t pixels = 1;
  for (int64_t extent : dst.get_dims()) pixels *= extent;
  pixels /= src.get_dims()[1];
  const int threads = ThreadsFor(windows, pixels, static_cast<int64_t>(src.get_size()));
  const int64_t scratch = AlignUp(kernel->scratch(windows));
  std::vector<MemoryArgument> arguments = {
      {DNNL_ARG_SRC, Argument::Source::kValue, b->Id("src"), src},
      {DNNL_ARG_DST, Argument::Source::kValue, b->Id("dst"), dst}};
  if (scratch > 0) {
    arguments.push_back({DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1,
                         MakeDesc({threads * scratch}, memory::data_type::u8, "a")});
    b->NeedScratchpad(threads * scratch);
  }
  b->AddStage(std::make_unique<LargestStage>(windows, pixels, *kernel, *element, threads, scratch,
                                             arguments),
              kernel->name);
  return true;
}

}  // namespace mxplan::maxima
