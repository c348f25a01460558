// The executable of a convolution in narrow groups; see grouped.h.
#include "onednn/grouped/grouped.h"

#include <omp.h>

#include <algorithm>
#include <array>

#include "memory/buffer.h"
#include "onednn/grouped/kernels.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::grouped {
namespace {

using dnnl::memory;

constexpr int64_t kScratchBytes = 24 << 10;  // of a strip: it stays in the nearest cache
constexpr int64_t kLeastColumns = 14;        // of a strip, where the image has them
constexpr int64_t kMostChannels = 64;        // of a group; wide ones are oneDNN's
constexpr int64_t kPartsOfThread = 4;

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kScratch, kFirstOperand };

struct Plan {
  Geometry geometry;
  Kernels kernels;
  int64_t images = 0, blocks = 0;        // groups, or as many of them as a vector has
  int64_t src_image = 0, dst_image = 0;  // strides
  int64_t block_inputs = 0, block_outputs = 0, block_weights = 0;
  int64_t columns = 0, rows = 0;  // of a part
  int64_t strips = 0, bands = 0;  // parts along columns and rows
  int threads = 1;
  int64_t scratch = 0;  // floats of a thread
  bool bias = false;
  std::vector<PostOp> post_ops;  // `data` is not null where an operand has to be filled in
};

class GroupedStage final : public MemoryStage {
 public:
  GroupedStage(Plan plan, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), plan_(std::move(plan)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    std::array<PostOp, post_ops::kMaxPostOps> operators;
    Output output;
    size_t operand = kFirstOperand;
    if (plan_.bias) output.bias = Data(memories[operand++]);
    for (size_t i = 0; i < plan_.post_ops.size(); ++i) {
      operators[i] = plan_.post_ops[i];
      if (operators[i].data) operators[i].data = Data(memories[operand++]);
    }
    output.post_ops = operators.data();
    output.post_op_count = static_cast<int>(plan_.post_ops.size());
    const int64_t parts = plan_.images * plan_.blocks * plan_.strips * plan_.bands;
    auto run = [&](int64_t thread, int64_t threads) {
      float* scratch = Data(memories[kScratch]) + thread * plan_.scratch;
      for (int64_t i = parts * thread / threads; i < parts * (thread + 1) / threads; ++i) {
        Run(memories, i, output, scratch);
      }
    };
    if (plan_.threads == 1) return run(0, 1);
#pragma omp parallel num_threads(plan_.threads)
    run(omp_get_thread_num(), omp_get_num_threads());
  }

 private:
  // Parts are counted by rows, strips, blocks of groups and images, the first innermost.
  void Run(const std::vector<dnnl_exec_arg_t>& memories, int64_t index, const Output& output,
           float* scratch) const {
    const int64_t band = index % plan_.bands, strip = index / plan_.bands % plan_.strips;
    const int64_t block = index / plan_.bands / plan_.strips % plan_.blocks;
    const int64_t image = index / plan_.bands / plan_.strips / plan_.blocks;
    const Image& dst = plan_.geometry.dst;
    Part part;
    part.src = Data(memories[kSrc]) + image * plan_.src_image + block * plan_.block_inputs;
    part.weights = Data(memories[kWeights]) + block * plan_.block_weights;
    part.first_output = block * plan_.block_outputs;
    part.offset = image * plan_.dst_image + part.first_output;
    part.dst = Data(memories[kDst]) + part.offset;
    part.top = band * plan_.rows;
    part.bottom = std::min(part.top + plan_.rows, dst.height);
    part.left = dst.width * strip / plan_.strips;
    part.right = dst.width * (strip + 1) / plan_.strips;
    plan_.kernels.run(plan_.geometry, part, output, scratch);
  }

  Plan plan_;
};

std::vector<Kernels> KernelsHere() {
  std::vector<Kernels> found;
  if (HasIsa(dnnl::cpu_isa::avx512_core)) found.push_back(Avx512Kernels());
  if (HasIsa(dnnl::cpu_isa::avx2)) found.push_back(Avx2Kernels());
  found.push_back(BaseKernels());
  return found;
}

// Whether groups fill vectors, or vectors groups, well enough.
bool Fits(int64_t inputs, int64_t outputs, int64_t groups, int64_t lanes, bool* spread) {
  *spread = outputs < lanes;
  if (*spread) {
    const bool together = lanes % outputs == 0 && groups % (lanes / outputs) == 0;
    return together && (inputs == outputs || inputs == 1);
  }
  return outputs % lanes == 0 || outputs > 2 * lanes;
}

// The geometry of a step that the kernels compute in some layout; its weights are constant.
bool ReadGeometry(StepBuilder* b, Geometry* g) {
  const Dims& src = b->Get("src").dims;
  const Dims& weights = b->Get("weights").dims;
  const Dims& dst = b->Get("dst").dims;
  const int64_t groups = b->Integer("groups");
  if (groups < 2 || src.size() != 4 || dst.size() != 4 || weights.size() != 5) return false;
  if (weights[0] != groups || weights[1] * groups != dst[1] || weights[2] * groups != src[1]) {
    return false;
  }
  const Dims &strides = b->Integers("strides", 2, 1), &dilation = b->Integers("dilation", 2, 1);
  const Dims& padding = b->Integers("padding", 4, 0);
  g->y = {weights[3], strides[0], dilation[0], padding[0]};
  g->x = {weights[4], strides[1], dilation[1], padding[1]};
  g->src.height = src[2];
  g->src.width = src[3];
  g->src.column = src[1];
  g->src.row = src[1] * src[3];
  g->dst.height = dst[2];
  g->dst.width = dst[3];
  g->dst.column = dst[1];
  g->dst.row = dst[1] * dst[3];
  g->inputs = weights[2];
  g->outputs = weights[1];
  for (const Axis& axis : {g->y, g->x}) {
    if (axis.filter > kMostFilter || axis.stride > kMostFilter) return false;
  }
  for (int64_t extent : dst) {
    if (extent == 0) return false;
  }
  return g->outputs > 1 && std::max(g->inputs, g->outputs) <= kMostChannels;  // not depthwise
}

}  // namespace

std::vector<std::string> NamesFor(StepBuilder* b) {
  Geometry geometry;
  if (!b->IsConstant("weights") || b->Desc("weights").get_inner_nblks() != 0) return {};
  if (b->HasPostOp(mxplan::PostOp::Kind::kDepthwise) || !ReadGeometry(b, &geometry)) return {};
  for (const char* role : {"src", "weights", "dst"}) {
    if (b->Desc(role).get_data_type() != memory::data_type::f32) return {};
  }
  if (!IsChannelsLast(b->Desc("src")) || !IsChannelsLast(b->Desc("dst")) ||
      !post_ops::HasPostOps(*b)) {
    return {};
  }
  std::vector<std::string> names;
  for (const Kernels& kernels : KernelsHere()) {
    bool spread = false;
    if (Fits(geometry.inputs, geometry.outputs, b->Integer("groups"), kernels.lanes, &spread)) {
      names.emplace_back(kernels.name);
    }
  }
  return names;
}

void Build(StepBuilder* b, const std::string& name) {
  Plan plan;
  Geometry& g = plan.geometry;
  ReadGeometry(b, &g);
  for (const Kernels& kernels : KernelsHere()) {
    if (name == kernels.name) plan.kernels = kernels;
  }
  const int64_t groups = b->Integer("groups"), lanes = plan.kernels.lanes;
  Fits(g.inputs, g.outputs, groups, lanes, &g.spread);
  const int64_t together = g.spread ? lanes / g.outputs : 1;
  plan.images = b->Get("dst").dims[0];
  plan.blocks = groups / together;
  plan.src_image = g.src.row * g.src.height;
  plan.dst_image = g.dst.row * g.dst.height;
  plan.block_inputs = together * g.inputs;
  plan.block_outputs = together * g.outputs;
  const int64_t vectors = (plan.block_outputs + lanes - 1) / lanes;
  plan.block_weights = vectors * g.y.filter * g.x.filter * g.inputs * lanes;
  plan.bias = b->Has("bias");
  plan.post_ops = post_ops::PostOpsOf(*b);

  int64_t columns = std::min(g.dst.width, kMostColumns);
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  while (columns > kLeastColumns && plan.kernels.scratch(g, columns) * kFloat > kScratchBytes) {
    --columns;
  }
  plan.strips = (g.dst.width + columns - 1) / columns;
  columns = (g.dst.width + plan.strips - 1) / plan.strips;
  plan.threads = omp_get_max_threads();
  // Rows are cut where there are few groups for the threads: each cut reads some of src again.
  const int64_t others = plan.images * plan.blocks * plan.strips;
  const int64_t wanted = plan.threads == 1 ? 1 : kPartsOfThread * plan.threads;
  plan.bands = std::clamp<int64_t>((wanted + others - 1) / others, 1, g.dst.height);
  plan.rows = (g.dst.height + plan.bands - 1) / plan.bands;
  plan.bands = (g.dst.height + plan.rows - 1) / plan.rows;
  plan.scratch = AlignUp(plan.kernels.scratch(g, columns) * kFloat) / kFloat;

  const Dims dims = {plan.blocks, plan.block_outputs, g.inputs, g.y.filter, g.x.filter};
  const memory::desc weights = b->Desc("weights");
  const memory::desc packed = MakeDesc(dims, weights.get_data_type(), Concat("aBdec", lanes, "b"));
  Packing packing;
  packing.kind = Packing::Kind::kReread;
  packing.through = MakeDesc(weights.get_dims(), weights.get_data_type(), PlainTag(5));
  packing.seen = MakeDesc(dims, weights.get_data_type(), PlainTag(5));

  auto value = [&](const char* role) {
    return MemoryArgument{0, Argument::Source::kValue, b->Id(role), b->Desc(role)};
  };
  const int64_t bytes = plan.threads * plan.scratch * kFloat;
  std::vector<MemoryArgument> arguments = {
      value("src"), value("dst"), b->Packed(0, b->Id("weights"), packed, packing),
      MemoryArgument{DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1,
                     MakeDesc({bytes}, memory::data_type::u8, "a")}};
  post_ops::BindBiasAndPostOps(b, &arguments);
  b->NeedScratchpad(bytes);
  b->NeedWeights(static_cast<int64_t>(packed.get_size()));
  b->AddStage(std::make_unique<GroupedStage>(std::move(plan), arguments), name);
}

}  // namespace mxplan::grouped
