// The executable of a product with numbers of few bits; see kernels.h.
#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "memory/buffer.h"
#include "onednn/few_bits/kernels.h"
#include "onednn/isa.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

using dnnl::memory;
using few_bits::Kernels;
using few_bits::kGroup;
using few_bits::Product;
using few_bits::RowBlocks;
using few_bits::Zero;

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
// Fewer bytes of numbers, or multiply-adds, are done before another thread would have been woken.
constexpr int64_t kBytesOfThread = 32 << 10;
constexpr int64_t kWorkOfThread = 1 << 19;
// Groups of 16 columns, each word in a row: see kernels.h.
constexpr const char* kInGroups = "aBc16b";

enum ArgumentIndex : size_t { kSrc, kDst, kNumbers, kScales, kFirstOptional };

struct Plan {
  Product product;
  Kernels kernels;
  RowBlocks blocks;            // none: few rows
  int64_t thread_scratch = 0;  // floats
  int64_t packed = 0;          // floats of rows, in front of the threads' scratch
  int threads = 1;
  std::vector<post_ops::PostOp> post_ops;

  bool few() const { return blocks.count == 0; }
};

class FewBitsStage final : public MemoryStage {
 public:
  FewBitsStage(Plan plan, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), plan_(std::move(plan)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Product product = plan_.product;
    product.src = Data(memories[kSrc]);
    product.dst = Data(memories[kDst]);
    product.words = Data<int32_t>(memories[kNumbers]);
    product.scales = Data(memories[kScales]);
    size_t next = kFirstOptional;
    if (product.zero != Zero::kMiddle) product.zero_points = Data<void>(memories[next++]);
    float* scratch = plan_.few() ? nullptr : Data(memories[next++]);
    const post_ops::FilledIn operators(plan_.post_ops, [&] { return Data(memories[next++]); });
    product.post_ops = operators.data();
    product.post_op_count = operators.count();
    const Product& ready = product;
    if (plan_.threads == 1) {
      Run(ready, scratch, 0, 1);
      return;
    }
#pragma omp parallel num_threads(plan_.threads)
    Run(ready, scratch, omp_get_thread_num(), omp_get_num_threads());
  }

 private:
  // The share of one of the threads, all of which are here.
  void Run(const Product& product, float* scratch, int64_t thread, int64_t threads) const {
    const int64_t groups = (product.columns + kGroup - 1) / kGroup;
    auto bound = [&](int64_t count, int64_t at) { return count * at / threads; };
    if (plan_.few()) {
      plan_.kernels.few(product, bound(groups, thread), bound(groups, thread + 1));
      return;
    }
    const RowBlocks& blocks = plan_.blocks;
    plan_.kernels.pack(product.src, product.depth, blocks, bound(blocks.count, thread),
                       bound(blocks.count, thread + 1), scratch);
    if (threads > 1) {
#pragma omp barrier
    }
    Product packed = product;
    packed.src = scratch;
    const int64_t together = plan_.kernels.tile_groups;
    const int64_t tiles = (groups + together - 1) / together;
    plan_.kernels.many(packed, blocks, bound(tiles, thread), bound(tiles, thread + 1),
                       scratch + plan_.packed + thread * plan_.thread_scratch);
  }

  Plan plan_;
};

Zero ZeroOf(const StepBuilder& b) {
  if (!b.Has("zero_points")) return Zero::kMiddle;
  const bool bytes = b.Desc("zero_points").get_data_type() == memory::data_type::u8;
  return bytes ? Zero::kBytes : Zero::kReals;
}

Plan PlanOf(const StepBuilder& b) {
  Plan plan;
  Product& product = plan.product;
  const Dims &src = b.Get("src").dims, &numbers = b.Get("numbers").dims;
  product.zero = ZeroOf(b);
  product.bits = b.Integer("bits");
  product.block = b.Integer("block");
  product.rows = 1;
  for (size_t i = 0; i + 1 < src.size(); ++i) product.rows *= src[i];
  product.depth = src.back();
  product.columns = numbers[1];
  product.words_of_column = numbers[2];
  product.blocks = b.Get("scales").dims[2];
  plan.kernels =
      ForThisIsa(few_bits::Avx512Kernels, few_bits::Avx2Kernels, few_bits::BaseKernels)();
  plan.post_ops = post_ops::PostOpsOf(b, src.size() - 1);
  const int64_t work = product.rows * product.columns * product.depth;
  const int64_t bytes = product.columns * product.words_of_column * few_bits::kWordBits / 8;
  plan.threads = static_cast<int>(std::clamp<int64_t>(
      std::max(bytes / kBytesOfThread, work / kWorkOfThread), 1, omp_get_max_threads()));
  if (product.rows > few_bits::kFewRows) {
    const int64_t most = plan.kernels.most_rows;
    plan.blocks = {(product.rows + most - 1) / most, product.rows};
    auto whole = [](int64_t floats) { return AlignUp(floats * kFloat) / kFloat; };
    plan.packed = whole(product.rows * product.depth);
    plan.thread_scratch = whole(plan.kernels.scratch);
  }
  return plan;
}

void CheckLayouts(StepBuilder* b) {
  for (const char* role : {"src", "dst"}) {
    const memory::desc desc = b->Fixed(role);
    if (desc.get_data_type() != memory::data_type::f32 ||
        !SamePlacement(desc, MakeDesc(desc.get_dims(), memory::data_type::f32,
                                      PlainTag(desc.get_dims().size())))) {
      ThrowUnsupported(role, " in layout ", TagOf(desc), ": expected float32, row by row");
    }
  }
  for (const char* role : {"numbers", "scales", "zero_points"}) {
    if (b->Has(role) && !b->IsConstant(role)) {
      ThrowUnsupported(role, ": expected a constant, which is packed");
    }
  }
}

}  // namespace

void BuildFewBits(StepBuilder* b) {
  CheckLayouts(b);
  Plan plan = PlanOf(*b);
  const char* name = plan.kernels.name;
  if (b->Refuses(name)) b->ThrowRefused();
  std::vector<MemoryArgument> arguments;
  for (const char* role : {"src", "dst"}) {
    arguments.push_back({0, Argument::Source::kValue, b->Id(role), b->Desc(role)});
  }
  for (const char* role : {"numbers", "scales", "zero_points"}) {
    if (!b->Has(role)) continue;
    const memory::desc desc = b->Desc(role);
    const memory::desc packed = MakeDesc(desc.get_dims(), desc.get_data_type(), kInGroups);
    arguments.push_back(b->Packed(0, b->Id(role), packed));
    b->NeedWeights(static_cast<int64_t>(packed.get_size()));
  }
  if (!plan.few()) {
    const int64_t bytes = (plan.packed + plan.threads * plan.thread_scratch) * kFloat;
    b->NeedScratchpad(bytes);
    arguments.push_back({DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1,
                         MakeDesc({bytes}, memory::data_type::u8, "a")});
  }
  post_ops::BindPostOps(*b, &arguments);
  b->AddStage(std::make_unique<FewBitsStage>(std::move(plan), arguments), name);
}

}  // namespace mxplan
