// The executables of convolutions of each channel by itself; see depthwise.h.
#include "onednn/depthwise/depthwise.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "onednn/depthwise/kernels.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/cuts.h"
#include "onednn/post_ops/output_stage.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::depthwise {
namespace {

using dnnl::memory;

// Less is multiplied before another thread would have been woken.
constexpr int64_t kProductsOfThread = 1 << 17;
constexpr int64_t kRowsOfThread = 8;  // fewer, and threads share channels instead

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kRest };

class DepthwiseStage final : public post_ops::OutputStage {
 public:
  DepthwiseStage(const Depthwise& product, int64_t images, bool bias, std::vector<PostOp> post_ops,
                 int threads, const Kernel& kernel, const std::vector<MemoryArgument>& arguments)
      : OutputStage(kRest, bias, std::move(post_ops), threads, arguments),
        product_(product),
        images_(images),
        kernel_(kernel) {}

  void Execute(dnnl_stream_t, const Memories& memories) const override {
    Depthwise product = product_;
    product.src = Data<uint16_t>(memories[kSrc]);
    product.dst = Data<void>(memories[kDst]);
    product.weights = Data(memories[kWeights]);
    Share(memories, [&](const Output& output, int64_t thread, int64_t threads) {
      Run(product, output, thread, threads);
    });
  }

 private:
  // Rows are counted through all images.
  void Run(const Depthwise& product, const Output& output, int64_t thread, int64_t threads) const {
    const int64_t height = product.y.dst, rows = images_ * height;
    const int64_t blocks = (product.channels + kBlock - 1) / kBlock;
    const bool by_blocks = rows < kRowsOfThread * threads && blocks >= threads;
    Part part;
    part.end_block = blocks;
    int64_t row = 0, end = rows;
    if (by_blocks) {
      part.block = blocks * thread / threads;
      part.end_block = blocks * (thread + 1) / threads;
    } else {
      row = rows * thread / threads;
      end = rows * (thread + 1) / threads;
    }
    while (row < end) {
      part.image = row / height;
      part.row = row - part.image * height;
      const int64_t last = std::min(end, (part.image + 1) * height);
      part.end_row = last - part.image * height;
      kernel_.run(product, output, part);
      row = last;
    }
  }

  Depthwise product_;
  int64_t images_;
  Kernel kernel_;
};

bool HasItsNumbers(StepBuilder* b) {
  return b->Desc("src").get_data_type() == memory::data_type::bf16 && IsReal(b->Desc("weights")) &&
         post_ops::HasRealResult(b);
}

Axis AxisOf(StepBuilder* b, size_t axis) {
  Axis result;
  result.src = b->Get("src").dims[2 + axis];
  result.dst = b->Get("dst").dims[2 + axis];
  result.window = b->Get("weights").dims[3 + axis];
  result.stride = b->Integers("strides", 2, 1)[axis];
  result.dilation = b->Integers("dilation", 2, 1)[axis];
  result.padding = b->Integers("padding", 4, 0)[axis];
  return result;
}

// Windows apart have nothing in common that the kernel could gain by.  Columns that it loads again
// for every pixel pay where more than half a block is loaded, and more than two of them.
bool Pays(const Axis& x, int64_t channels) {
  if (x.window <= x.stride) return false;
  return ReusesColumns(x) || (channels > kBlock / 2 && x.window > 2);
}

bool HasItsGeometry(StepBuilder* b) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const int64_t groups = b->Integer("groups");
  if (src.size() != 4 || dst.size() != 4 || groups == 1 || b->Rank("weights") != 5) return false;
  if (src[1] != groups || dst[1] != groups || IsEmpty(b->Desc("src")) || IsEmpty(b->Desc("dst"))) {
    return false;
  }
  return b->IsConstant("weights") && b->Desc("weights").get_inner_nblks() == 0 &&
         IsChannelsLast(b->Desc("src")) && IsChannelsLast(b->Desc("dst")) &&
         Pays(AxisOf(b, 1), src[1]);
}

// Filters in float32 as [blocks][taps][two][half a block].
memory::desc PackedWeights(const Dims& filter, Packing* packing) {
  const int64_t blocks = (filter[0] + kBlock - 1) / kBlock;
  const Dims seen = {blocks, filter[3] * filter[4], kBlock / 2, 2};
  *packing = {Packing::Kind::kReread, MakeDesc(filter, memory::data_type::f32, "Abcde32a"),
              MakeDesc(seen, memory::data_type::f32, "abcd")};
  return MakeDesc(seen, memory::data_type::f32, "abdc");
}

}  // namespace

std::vector<std::string> NamesFor(StepBuilder* b) {
  if (!HasIsa(dnnl::cpu_isa::avx512_core_bf16)) return {};
  if (!HasItsGeometry(b) || !HasItsNumbers(b)) return {};
  return {Avx512Bf16Kernel().name};
}

void Build(StepBuilder* b, const std::string&) {
  const Dims &dst = b->Get("dst").dims, &filter = b->Get("weights").dims;
  Depthwise product;
  product.channels = dst[1];
  product.y = AxisOf(b, 0);
  product.x = AxisOf(b, 1);
  product.number = RealOf(b->Desc("dst"), "dst");
  product.cut = post_ops::CutOf(b->step().post_ops);
  Packing packing;
  const memory::desc weights = PackedWeights(filter, &packing);
  auto value = [&](int id) { return MemoryArgument{0, Argument::Source::kValue, id, b->Desc(id)}; };
  std::vector<MemoryArgument> arguments = {value(b->Id("src")), value(b->Id("dst")),
                                           b->Packed(0, b->Id("weights"), weights, packing)};
  post_ops::BindBiasAndPostOps(b, &arguments);
  b->NeedWeights(static_cast<int64_t>(weights.get_size()));
  const int64_t products = dst[0] * dst[1] * dst[2] * dst[3] * filter[3] * filter[4];
  const auto threads =
      static_cast<int>(std::clamp<int64_t>(products / kProductsOfThread, 1, omp_get_max_threads()));
  const Kernel kernel = Avx512Bf16Kernel();
  b->AddStage(std::make_unique<DepthwiseStage>(product, dst[0], b->Has("bias"),
                                               post_ops::PostOpsOf(*b), threads, kernel, arguments),
              kernel.name);
}

}  // namespace mxplan::depthwise
