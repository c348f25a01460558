// The executables of windows over images of few channels; see windows.h.
#include "onednn/windows/windows.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "memory/buffer.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/cuts.h"
#include "onednn/post_ops/output_stage.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/windows/bands.h"
#include "onednn/windows/kernels.h"
#include "onednn/windows/pixel_geometry.h"

namespace mxplan::windows {
namespace {

using dnnl::memory;

// Less is multiplied before another thread would have been woken.
constexpr int64_t kProductsOfThread = 1 << 19;
constexpr int64_t kMostChannels = 16;  // oneDNN's kernels fill their vectors with more
constexpr int64_t kItem = 2, kPair = 2;

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kScratch, kRest };

class WindowsStage final : public post_ops::OutputStage {
 public:
  WindowsStage(const Lines& lines, const Bands& bands, int64_t dst_image, int64_t scratch,
               bool bias, std::vector<PostOp> post_ops, int threads, const Kernels& kernels,
               const std::vector<MemoryArgument>& arguments)
      : OutputStage(kRest, bias, std::move(post_ops), threads, arguments),
        lines_(lines),
        bands_(bands),
        dst_image_(dst_image),
        scratch_(scratch),
        kernels_(kernels) {}

  void Execute(dnnl_stream_t, const Memories& memories) const override {
    Share(memories, [&](const Output& output, int64_t thread, int64_t threads) {
      uint8_t* scratch = Data<uint8_t>(memories[kScratch]) + thread * scratch_;
      Lines lines = lines_;
      lines.src = scratch;
      lines.weights = Data<uint8_t>(memories[kWeights]);
      lines.dst = Data<void>(memories[kDst]);
      ForBands(bands_, thread, threads, [&](int64_t line, int64_t count) {
        lines.count = count;
        lines.first = line / bands_.lines * dst_image_ + line % bands_.lines * lines.line;
        CopyBand(bands_, Data<uint8_t>(memories[kSrc]), line, count, 0, scratch);
        kernels_.run(lines, output);
      });
    });
  }

 private:
  Lines lines_;
  Bands bands_;
  int64_t dst_image_;
  int64_t scratch_;  // bytes of a thread
  Kernels kernels_;
};

bool IsInBlocks(const memory::desc& desc) {
  return SamePlacement(desc, MakeDesc(desc.get_dims(), desc.get_data_type(), "aBcd16b"));
}

bool HasItsNumbers(StepBuilder* b) {
  const auto type = [&](const char* role) { return b->Desc(role).get_data_type(); };
  return type("src") == memory::data_type::bf16 && type("weights") == memory::data_type::bf16 &&
         post_ops::HasRealResult(b);
}

bool HasItsGeometry(StepBuilder* b) {
  const Dims& src = b->Get("src").dims;
  const Dims& filter = b->Get("weights").dims;
  const Dims& dst = b->Get("dst").dims;
  if (src.size() != 4 || dst.size() != 4 || filter.size() != 4 || !b->IsConstant("weights") ||
      b->Integer("groups") != 1 || b->Desc("weights").get_inner_nblks() != 0) {
    return false;
  }
  for (int64_t extent : {src[0], src[1], dst[1], dst[2], dst[3]}) {
    if (extent == 0) return false;
  }
  return HasShortWindows(b) && src[1] < kMostChannels && IsChannelsLast(b->Desc("src")) &&
         (IsChannelsLast(b->Desc("dst")) || IsInBlocks(b->Desc("dst")));
}

}  // namespace

std::vector<std::string> NamesFor(StepBuilder* b) {
  if (!HasIsa(dnnl::cpu_isa::avx512_core_bf16)) return {};
  if (!HasItsGeometry(b) || !HasItsNumbers(b)) return {};
  return {Avx512Bf16Kernels().name};
}

void Build(StepBuilder* b, const std::string&) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const Dims& filter = b->Get("weights").dims;
  const int64_t row = filter[3] * src[1];  // numbers of a window's
  const Bands bands = BandsOf(b, kItem);
  Lines lines;
  lines.src_pixel = b->Integers("strides", 2, 1)[1] * src[1] * kItem;
  lines.src_row = bands.padded_row;
  lines.src_line = bands.stride * bands.padded_row;
  lines.rows = filter[2];
  lines.pairs = row / kPair;
  lines.one_more = row % kPair != 0;  // whose pair is whole among the weights
  lines.weights_row = (row + kPair - 1) / kPair * kPair * kItem * kLanesOfBlock;
  lines.channels = dst[1];
  lines.number = RealOf(b->Desc("dst"), "dst");
  lines.blocks = !IsChannelsLast(b->Desc("dst"));
  lines.pixel = lines.blocks ? kLanesOfBlock : dst[1];
  lines.vector = lines.blocks ? kLanesOfBlock * dst[2] * dst[3] : kLanesOfBlock;
  lines.line = lines.pixel * dst[3];
  lines.pixels = dst[3];
  lines.cut = post_ops::CutOf(b->step().post_ops);
  // Filters as rows of windows: [channels, rows, numbers of a row].
  const Dims seen = {dst[1], row, filter[2]};
  const Packing as_rows = {Packing::Kind::kReread,
                           MakeDesc(filter, memory::data_type::bf16, "acdb"),
                           MakeDesc(seen, memory::data_type::bf16, "acb")};
  const memory::desc weights = MakeDesc(seen, memory::data_type::bf16, "AcB16a2b");
  const int64_t products = dst[0] * dst[1] * dst[2] * dst[3] * row * filter[2];
  const auto threads =
      static_cast<int>(std::clamp<int64_t>(products / kProductsOfThread, 1, omp_get_max_threads()));
  const int64_t scratch = AlignUp(bands.bytes());
  const int64_t stored = lines.blocks ? weights.get_padded_dims()[0] : dst[1];
  const int64_t image = stored * dst[2] * dst[3];
  auto value = [&](int id) { return MemoryArgument{0, Argument::Source::kValue, id, b->Desc(id)}; };
  std::vector<MemoryArgument> arguments = {
      value(b->Id("src")), value(b->Id("dst")), b->Packed(0, b->Id("weights"), weights, as_rows),
      MemoryArgument{DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1,
                     MakeDesc({threads * scratch}, memory::data_type::u8, "a")}};
  post_ops::BindBiasAndPostOps(b, &arguments);
  b->NeedScratchpad(threads * scratch);
  b->NeedWeights(static_cast<int64_t>(weights.get_size()));
  const Kernels kernels = Avx512Bf16Kernels();
  b->AddStage(std::make_unique<WindowsStage>(lines, bands, image, scratch, b->Has("bias"),
                                             post_ops::PostOpsOf(*b), threads, kernels, arguments),
              kernels.name);
}

}  // namespace mxplan::windows
