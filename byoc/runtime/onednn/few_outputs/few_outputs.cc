// The executables of convolutions with few output channels; see few_outputs.h.
#include "onednn/few_outputs/few_outputs.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "memory/buffer.h"
#include "onednn/few_outputs/kernels.h"
#include "onednn/few_outputs/parts.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/output_stage.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::few_outputs {

namespace {

using dnnl::memory;

// Less is multiplied before another thread would have been woken.
constexpr int64_t kProductsOfThread = 1 << 17;

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kScratch, kRest };

struct Plan {
  Convolution convolution;  // without its tables
  std::unique_ptr<const Tables> tables;
  Parts parts;
  Kernel kernel;
  int threads = 1;
  int64_t part_sums = 0, scratch = 0;  // numbers, of a thread
};

class FewOutputsStage final : public post_ops::OutputStage {
 public:
  FewOutputsStage(Plan plan, bool bias, std::vector<PostOp> post_ops,
                  const std::vector<MemoryArgument>& arguments)
      : OutputStage(kRest, bias, std::move(post_ops), plan.threads, arguments),
        plan_(std::move(plan)) {}

  void Execute(dnnl_stream_t, const Memories& memories) const override {
    Convolution convolution = plan_.convolution;
    plan_.tables->PutInto(&convolution);
    convolution.from = Data(memories[kSrc]);
    convolution.weights = Data(memories[kWeights]);
    convolution.to = Data(memories[kDst]);
    const int64_t parts = plan_.parts.all();
    Share(memories, [&](const Output& output, int64_t thread, int64_t threads) {
      float* sums = Data(memories[kScratch]) + thread * (plan_.part_sums + plan_.scratch);
      for (int64_t i = parts * thread / threads; i < parts * (thread + 1) / threads; ++i) {
        plan_.kernel.run(convolution, output, PartAt(i), sums, sums + plan_.part_sums);
      }
    });
  }

 private:
  // Columns are counted first, then rows, planes and images.
  Part PartAt(int64_t index) const {
    Part part;
    for (size_t axis = kAxes; axis-- > 0;) {
      const int64_t count = plan_.parts.count[axis], size = plan_.parts.size[axis];
      const int64_t begin = index % count * size;
      part.axes[axis] = {begin, std::min(begin + size, plan_.convolution.axes[axis].dst)};
      index /= count;
    }
    part.image = index;
    return part;
  }

  Plan plan_;
};

// --- geometry

bool IsTransposed(const StepBuilder& b) { return b.step().kind == "deconvolution"; }

// False for a layout that is neither plain nor channels last or in one block of whole vectors.
bool ReadPlaces(const memory::desc& desc, int64_t lanes, Places* places) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return false;
  const Dims dims = desc.get_dims(), strides = desc.get_strides();
  const size_t axes = dims.size() - 2;
  places->image = strides[0];
  for (size_t i = 0; i < axes; ++i) places->axes[kAxes - axes + i] = strides[2 + i];
  if (desc.get_inner_nblks() == 1 && desc.get_inner_idxs()[0] == 1) {
    places->block = desc.get_inner_blks()[0];
    places->blocks = strides[1];
    return places->block % lanes == 0;
  }
  if (desc.get_inner_nblks() != 0) return false;
  if (IsChannelsLast(desc)) {
    places->block = dims[1];
    return true;
  }
  places->blocks = strides[1];
  return SamePlacement(desc, MakeDesc(dims, desc.get_data_type(), PlainTag(dims.size())));
}

bool ReadGeometry(StepBuilder* b, int64_t lanes, Convolution* c) {
  const memory::desc src = b->Desc("src"), dst = b->Desc("dst");
  const Dims &filter = b->Get("weights").dims, from = src.get_dims(), to = dst.get_dims();
  if (from.size() < 3 || from.size() > 2 + kAxes || filter.size() != from.size() ||
      b->Integer("groups") != 1 || IsEmpty(src) || IsEmpty(dst)) {
    return false;
  }
  c->inputs = from[1];
  c->outputs = to[1];
  const size_t axes = from.size() - 2;
  const Dims &strides = b->Integers("strides", axes, 1), &steps = b->Integers("dilation", axes, 1);
  const Dims& padding = b->Integers("padding", 2 * axes, 0);
  int64_t taps = 1;
  for (size_t i = 0; i < axes; ++i) {
    Axis& axis = c->axes[kAxes - axes + i];
    axis.src = from[2 + i];
    axis.dst = to[2 + i];
    axis.window = filter[2 + i];
    taps *= axis.window;
    if (IsTransposed(*b)) {
      axis.scale = strides[i];
      axis.first = -padding[i];
      axis.step = steps[i];
    } else {
      if (strides[i] != 1) return false;
      axis.first = padding[i];
      axis.step = -steps[i];
    }
  }
  if (!ReadPlaces(src, lanes, &c->src) || !ReadPlaces(dst, 1, &c->dst)) return false;
  c->stored = dst.get_padded_dims()[1];
  return taps > 1;
}

std::vector<Kernel> KernelsHere() {
  std::vector<Kernel> found;
  if (HasIsa(dnnl::cpu_isa::avx512_core)) found.push_back(Avx512Kernel());
  if (HasIsa(dnnl::cpu_isa::avx2)) found.push_back(Avx2Kernel());
  return found;
}

// Filters as [columns][inputs][planes][rows][outputs].
memory::desc PackedWeights(const Convolution& c, const Dims& filter, Packing* packing) {
  std::string order = PlainTag(filter.size());  // outputs, inputs, planes, rows, columns
  std::rotate(order.begin(), order.begin() + 1, order.end());
  std::rotate(order.begin(), order.end() - 2, order.end() - 1);
  const memory::desc packed =
      MakeDesc({filter.back() * c.inputs, c.products()}, memory::data_type::f32, "ab");
  *packing = {Packing::Kind::kReread, MakeDesc(filter, memory::data_type::f32, order), packed};
  return packed;
}

}  // namespace

std::vector<std::string> NamesFor(StepBuilder* b) {
  if (!b->IsConstant("weights") || b->Has("weights_scale")) return {};
  if (b->HasPostOp(mxplan::PostOp::Kind::kDepthwise) || !post_ops::HasFloatPostOps(*b)) return {};
  for (const char* role : {"src", "weights", "dst"}) {
    if (b->Desc(role).get_data_type() != memory::data_type::f32) return {};
  }
  if (b->Desc("weights").get_inner_nblks() != 0) return {};
  std::vector<std::string> names;
  for (const Kernel& kernel : KernelsHere()) {
    Convolution convolution;
    if (!ReadGeometry(b, kernel.lanes, &convolution)) continue;
    if (convolution.outputs * 2 <= kernel.lanes) names.emplace_back(kernel.name);
  }
  return names;
}

void Build(StepBuilder* b, const std::string& name) {
  Plan plan;
  for (const Kernel& kernel : KernelsHere()) {
    if (name == kernel.name) plan.kernel = kernel;
  }
  Convolution& c = plan.convolution;
  ReadGeometry(b, plan.kernel.lanes, &c);
  const Dims &src = b->Get("src").dims, &filter = b->Get("weights").dims;
  int64_t products = c.outputs;
  for (int64_t extent : src) products *= extent;
  for (size_t i = 2; i < filter.size(); ++i) products *= filter[i];
  plan.threads =
      static_cast<int>(std::clamp<int64_t>(products / kProductsOfThread, 1, omp_get_max_threads()));
  plan.kernel.set_tile(&c);
  plan.parts = PartsOf(c, src[0], plan.threads);
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  auto aligned = [](int64_t numbers) { return AlignUp(numbers * kFloat) / kFloat; };
  c.part_rows = plan.parts.size[kRow];
  c.pitch = aligned((plan.parts.size[kColumn] + c.phases() - 1) / c.phases());
  plan.tables = std::make_unique<const Tables>(&c);
  plan.part_sums = aligned(plan.parts.size[kPlane] * c.part_rows * c.row() + plan.kernel.lanes);
  plan.scratch = aligned(plan.kernel.scratch(c, plan.parts.size[kColumn]));
  Packing packing;
  const memory::desc weights = PackedWeights(c, filter, &packing);
  auto value = [&](int id) { return MemoryArgument{0, Argument::Source::kValue, id, b->Desc(id)}; };
  const int64_t bytes = plan.threads * (plan.part_sums + plan.scratch) * kFloat;
  std::vector<MemoryArgument> arguments = {
      value(b->Id("src")), value(b->Id("dst")), b->Packed(0, b->Id("weights"), weights, packing),
      MemoryArgument{DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1,
                     MakeDesc({bytes}, memory::data_type::u8, "a")}};
  post_ops::BindBiasAndPostOps(b, &arguments);
  b->NeedScratchpad(bytes);
  b->NeedWeights(static_cast<int64_t>(weights.get_size()));
  b->AddStage(std::make_unique<FewOutputsStage>(std::move(plan), b->Has("bias"),
                                                post_ops::PostOpsOf(*b), arguments),
              name);
}

}  // namespace mxplan::few_outputs
