// The executables of dense convolutions by tiles; see tiles.h.
#include "onednn/tiles/tiles.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "memory/buffer.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/cuts.h"
#include "onednn/post_ops/output_stage.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/tiles/kernels.h"
#include "onednn/windows/bands.h"
#include "onednn/windows/pixel_geometry.h"

namespace mxplan::tiles {
namespace {

using dnnl::memory;

// Less is multiplied before another thread would have been woken.
constexpr int64_t kProductsOfThread = 1 << 20;
constexpr int64_t kPanel = 64;  // channels that a thread has at least
constexpr int64_t kItem = 2;

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kRest };

class TilesStage final : public post_ops::OutputStage {
 public:
  // `bands`: of windows.  `scratch`: bytes of a thread, for copies of bands and behind them of
  // what the kernel reads.
  TilesStage(const Product& product, int64_t pixels, std::optional<Bands> bands, int64_t scratch,
             bool bias, std::vector<PostOp> post_ops, int threads, const Kernel& kernel,
             const std::vector<MemoryArgument>& arguments)
      : OutputStage(kRest, bias, std::move(post_ops), threads, arguments),
        product_(product),
        pixels_(pixels),
        bands_(bands),
        scratch_(scratch),
        kernel_(kernel) {}

  void Execute(dnnl_stream_t, const Memories& memories) const override {
    Share(memories, [&](const Output& output, int64_t thread, int64_t threads) {
      Product product = product_;
      product.src = Data<uint8_t>(memories[kSrc]);
      product.dst = Data<void>(memories[kDst]);
      product.weights = Data<uint8_t>(memories[kWeights]);
      if (scratch_ > 0) product.scratch = Data<uint8_t>(memories.back()) + thread * scratch_;
      const PixelShare share(pixels_, product.channels, kPanel, thread, threads);
      if (bands_) return RunBands(product, output, share);
      if (share.begin < share.end) kernel_.run(product, output, share);
    });
  }

 private:
  void RunBands(const Product& whole, const Output& output, PixelShare share) const {
    Product product = whole;
    product.src = whole.scratch;
    product.scratch = whole.scratch + AlignUp(bands_->bytes());
    ForBands(*bands_, share.thread, share.threads, [&](int64_t line, int64_t lines) {
      product.geometry.first_line = line;
      product.geometry.lines = lines;
      CopyBand(*bands_, whole.src, line, lines, 0, whole.scratch);
      share.begin = line * product.geometry.line;
      share.end = (line + lines) * product.geometry.line;
      kernel_.run(product, output, share);
    });
  }

  Product product_;
  int64_t pixels_;
  std::optional<Bands> bands_;
  int64_t scratch_;
  Kernel kernel_;
};

bool HasItsNumbers(StepBuilder* b) {
  const auto type = [&](const char* role) { return b->Desc(role).get_data_type(); };
  return type("src") == memory::data_type::bf16 && type("weights") == memory::data_type::bf16 &&
         post_ops::HasRealResult(b);
}

std::string NameOf(Reach reach) {
  const char* family = reach == Reach::kPixel ? "tiles_1x1:" : "tiles_windows:";
  return std::string(family) + AmxKernel().instructions;
}

// `filters`: the weights in an order in which those of each channel, `numbers` of them, lie one
// behind the other, in that of what a pixel is made of.
void BuildProduct(StepBuilder* b, Product product, int64_t pixels, std::optional<Bands> bands,
                  int64_t numbers, const memory::desc& filters, const std::string& name) {
  const Kernel kernel = AmxKernel();
  product.channels = b->Get("dst").dims[1];
  product.number = RealOf(b->Desc("dst"), "dst");
  product.cut = post_ops::CutOf(b->step().post_ops);
  const auto matrix = [&](const char* tag) {
    return MakeDesc({product.channels, numbers}, memory::data_type::bf16, tag);
  };
  const memory::desc weights = matrix("AB16b16a2b");
  product.weights_block = weights.get_padded_dims()[1] * kBlock * kItem;
  const int64_t scratch = (bands ? AlignUp(bands->bytes()) : 0) + AlignUp(kernel.scratch(product));
  const auto threads = static_cast<int>(std::clamp<int64_t>(
      pixels * numbers * product.channels / kProductsOfThread, 1, omp_get_max_threads()));
  const Packing packing = {Packing::Kind::kReread, filters, matrix("ab")};
  auto value = [&](int id) { return MemoryArgument{0, Argument::Source::kValue, id, b->Desc(id)}; };
  std::vector<MemoryArgument> arguments = {value(b->Id("src")), value(b->Id("dst")),
                                           b->Packed(0, b->Id("weights"), weights, packing)};
  post_ops::BindBiasAndPostOps(b, &arguments);
  if (scratch > 0) {
    arguments.push_back({DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1,
                         MakeDesc({threads * scratch}, memory::data_type::u8, "a")});
    b->NeedScratchpad(threads * scratch);
  }
  b->NeedWeights(static_cast<int64_t>(weights.get_size()));
  b->AddStage(std::make_unique<TilesStage>(product, pixels, bands, scratch, b->Has("bias"),
                                           post_ops::PostOpsOf(*b), threads, kernel, arguments),
              name);
}

}  // namespace

std::vector<std::string> NamesFor(StepBuilder* b) {
  if (!HasIsa(dnnl::cpu_isa::avx512_core_amx)) return {};
  const Reach reach = ReachOf(b);
  if ((reach != Reach::kPixel && reach != Reach::kWindow) || !HasItsNumbers(b)) return {};
  return {NameOf(reach)};
}

void Build(StepBuilder* b, const std::string& name) {
  const Dims& filter = b->Get("weights").dims;
  Product product;
  const int64_t pixels = PixelsOfDst(b), numbers = filter[1] * filter[2] * filter[3];
  if (ReachOf(b) == Reach::kPixel) {
    product.geometry = SinglePixels(b, kItem);
    const memory::desc filters = MakeDesc(filter, memory::data_type::bf16, "abcd");
    return BuildProduct(b, product, pixels, {}, numbers, filters, name);
  }
  const Bands bands = BandsOf(b, kItem, numbers * b->Get("dst").dims[1] * kItem);
  product.geometry = WindowPixels(b, bands, kItem);
  const memory::desc filters = MakeDesc(filter, memory::data_type::bf16, "acdb");
  BuildProduct(b, product, pixels, bands, numbers, filters, name);
}

}  // namespace mxplan::tiles
