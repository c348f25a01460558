// The executable of a Winograd convolution; see winograd.h.
#include "onednn/winograd/winograd.h"

#include <omp.h>

#include <algorithm>

#include "base/error.h"
#include "memory/buffer.h"
#include "onednn/engine.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/winograd/filters.h"
#include "onednn/winograd/stage.h"

namespace mxplan::winograd {
namespace {

using dnnl::memory;

// The transforms add this to the rounding of the sums, measured up to 2048 channels.
constexpr double kErrorF2 = 5e-7, kErrorF4 = 2e-6, kErrorF2Of5 = 2e-6;

double ErrorOf(Variant variant) {
  if (variant == Variant::kF2) return kErrorF2;
  return variant == Variant::kF4 ? kErrorF4 : kErrorF2Of5;
}

const char* NameOf(Variant variant) {
  return TileSize(variant) == 4 ? "winograd_f4" : "winograd_f2";
}

// Makes oneDNN create primitives for one thread while it lives.
class OneThread {
 public:
  OneThread() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

// The first group of channels-innermost images of a descriptor.
Images ImagesOf(const memory::desc& desc, const char* role, int64_t groups, int64_t lanes) {
  bool blocked = desc.get_format_kind() == memory::format_kind::blocked;
  if (!blocked) {
    ThrowUnsupported("Winograd takes ", role, " as acdb, aBcd8b or aBcd16b, and picks none");
  }
  Dims dims = desc.get_dims(), strides = desc.get_strides();
  Images images;
  images.height = dims[2];
  images.width = dims[3];
  images.channels = dims[1] / groups;
  images.image = strides[0];
  images.row = strides[2];
  images.column = strides[3];
  if (desc.get_inner_nblks() == 0 && strides[1] == 1) {
    images.block = int64_t{1} << images.block_bits;
    images.stored = images.channels;
    return images;
  }
  const bool one_block = desc.get_inner_nblks() == 1 && desc.get_inner_idxs()[0] == 1;
  const int64_t size = one_block ? desc.get_inner_blks()[0] : 0;
  if (size != 8 && size != 16) {
    ThrowUnsupported("Winograd takes ", role, " as acdb, aBcd8b or aBcd16b, not as ", TagOf(desc));
  }
  if (size < lanes) {
    ThrowUnsupported("Winograd takes ", role, " in blocks that fill a vector of ", lanes,
                     " channels, not as ", TagOf(desc));
  }
  if (groups > 1 && images.channels % size != 0) {
    ThrowUnsupported("Winograd takes ", role, " in blocks where groups fill them, not with ",
                     images.channels, " channels to a group");
  }
  images.block_bits = size == 8 ? 3 : 4;
  images.stored = (images.channels + size - 1) / size * size;
  images.block = strides[1];
  images.padded = true;
  return images;
}

// The variant that has tiles of this size, for these filters.
Variant VariantOf(int64_t tile, int64_t height, int64_t width) {
  for (Variant variant : {Variant::kF2, Variant::kF4, Variant::kF2Of5}) {
    int64_t size = FilterSize(variant);
    if (TileSize(variant) == tile && size == height && size == width) return variant;
  }
  ThrowUnsupported("Winograd with tiles of ", tile, "x", tile, " takes filters of 3x3",
                   tile == 2 ? " and 5x5" : "", ", not of ", height, "x", width);
}

// A transposed convolution of stride 1 is a convolution by the filters turned by 180 degrees.
bool IsTurned(const StepBuilder& b) { return b.step().kind == "deconvolution"; }

// Zeros in front of each spatial axis of src, then behind each; less than none leave src's edge
// out.
Dims ZerosAround(const StepBuilder& b, Variant variant) {
  Dims zeros = b.Integers("padding", 4, 0);
  for (int64_t& count : zeros) count = IsTurned(b) ? FilterSize(variant) - 1 - count : count;
  return zeros;
}

// Throws unless the step is one that this file's algorithm computes, with tiles of this size.
Variant CheckGeometry(const StepBuilder& b, int64_t tile) {
  const Dims& src = b.Get("src").dims;
  Dims weights = b.Get("weights").dims;
  const Dims& dst = b.Get("dst").dims;
  const int64_t groups = b.Integer("groups");
  if (groups < 1) ThrowInvalidInput("groups is ", groups, ", expected at least 1");
  if (src.size() != 4) ThrowUnsupported("Winograd takes images, not src of rank ", src.size());
  const bool grouped = groups > 1;
  if (weights.size() != (grouped ? 5 : 4) || dst.size() != 4 || src[0] != dst[0] ||
      (grouped && weights[0] != groups)) {
    ThrowInvalidInput("src, weights and dst do not fit each other");
  }
  if (grouped) weights.erase(weights.begin());
  if (weights[0] * groups != dst[1] || weights[1] * groups != src[1]) {
    ThrowInvalidInput("src, weights and dst do not fit each other");
  }
  if (grouped && weights[1] == 1) ThrowUnsupported("Winograd takes no depthwise convolutions");
  const Dims ones = {1, 1};
  if (b.Integers("strides", 2, 1) != ones || b.Integers("dilation", 2, 1) != ones) {
    ThrowUnsupported("Winograd takes filters with stride 1 and without dilation");
  }
  const Variant variant = VariantOf(tile, weights[2], weights[3]);
  const Dims zeros = ZerosAround(b, variant);
  for (size_t i = 0; i < 2; ++i) {
    int64_t expected = src[i + 2] + zeros[i] + zeros[i + 2] - (FilterSize(variant) - 1);
    if (dst[i + 2] != expected) {
      ThrowInvalidInput("dst has extent ", dst[i + 2], " on spatial axis ", i, ", expected ",
                        expected);
    }
  }
  if (src[1] == 0) ThrowUnsupported("Winograd takes images with channels");
  const memory::desc filters = b.Desc("weights");
  if (filters.get_format_kind() != memory::format_kind::blocked) {
    ThrowUnsupported("Winograd picks no layout for weights");
  }
  if (b.IsConstant("weights") && filters.get_inner_nblks() != 0) {
    ThrowUnsupported("Winograd takes constant weights in a layout without blocks");
  }
  if (!b.IsConstant("weights") && filters.get_data_type() != memory::data_type::f32) {
    ThrowUnsupported("Winograd takes weights that are no constant in float32");
  }
  return variant;
}

// The kernels for the type that images and filters are in.
Kernels KernelsFor(const StepBuilder& b, Variant variant) {
  const memory::data_type type = b.Desc("src").get_data_type();
  for (const char* role : {"weights", "dst"}) {
    if (b.Desc(role).get_data_type() != type) {
      ThrowUnsupported("Winograd takes images and filters in one type, ", role, " is not in src's");
    }
  }
  if (type == memory::data_type::f32) return SelectKernels(variant);
  if (type != memory::data_type::bf16) ThrowUnsupported("Winograd takes float32 and bfloat16");
  const Kernels kernels = SelectShortKernels(variant);
  if (!kernels.input) ThrowUnsupported("Winograd in bfloat16 needs avx512_core_bf16");
  return kernels;
}

// An operand for each channel is read as float32.
void CheckOperands(const StepBuilder& b, const std::vector<PostOp>& post_ops) {
  for (size_t i = 0; i < post_ops.size(); ++i) {
    if (!post_ops[i].per_channel) continue;
    if (b.Desc(b.step().post_ops[i].value).get_data_type() != memory::data_type::f32) {
      ThrowUnsupported("Winograd takes a post-op's operand for each channel in float32");
    }
  }
}

// Each group's transformed filters: a packed constant, or a part of the scratchpad, from `offset`
// on, that a stage in front writes in each call.
std::vector<MemoryArgument> FiltersOf(StepBuilder* b, Variant variant, const Plan& plan,
                                      const memory::desc& desc, int64_t* offset) {
  const auto bytes = static_cast<int64_t>(desc.get_size());
  std::vector<MemoryArgument> matrices;
  if (b->IsConstant("weights")) {
    Packing packing;
    packing.kind = Packing::Kind::kWinograd;
    packing.variant = variant;
    packing.turned = IsTurned(*b);
    for (packing.group = 0; packing.group < plan.groups; ++packing.group) {
      matrices.push_back(b->Packed(0, b->Id("weights"), desc, packing));
    }
    b->NeedWeights(plan.groups * bytes);
    return matrices;
  }
  for (int64_t group = 0; group < plan.groups; ++group) {
    matrices.push_back({0, Argument::Source::kScratchpad, -1, desc, *offset});
    *offset += AlignUp(bytes);
  }
  const MemoryArgument filters = {0, Argument::Source::kValue, b->Id("weights"),
                                  b->Desc("weights")};
  b->AddStage(MakeFiltersStage(plan.kernels, filters, IsTurned(*b), matrices), NameOf(variant));
  return matrices;
}

}  // namespace

void Build(StepBuilder* b, int64_t tile) {
  const Variant variant = CheckGeometry(*b, tile);
  for (int64_t dim : b->Get("dst").dims) {
    if (dim == 0) return;  // nothing to write
  }
  const int64_t elements = PatchElements(variant);
  const Dims zeros = ZerosAround(*b, variant);
  Plan plan;
  plan.groups = b->Integer("groups");
  plan.kernels = KernelsFor(*b, variant);
  plan.src = ImagesOf(b->Desc("src"), "src", plan.groups, plan.kernels.lanes);
  plan.dst = ImagesOf(b->Desc("dst"), "dst", plan.groups, plan.kernels.lanes);
  plan.grid = {(plan.dst.height + tile - 1) / tile, (plan.dst.width + tile - 1) / tile, zeros[0],
               zeros[1]};
  plan.tiles = b->Get("dst").dims[0] * plan.grid.rows * plan.grid.columns;
  plan.src_columns = RoundUpToColumns(plan.src.channels);
  plan.dst_columns = RoundUpToColumns(plan.dst.channels);
  plan.threads = omp_get_max_threads();
  plan.bias = b->Has("bias");
  plan.post_ops = post_ops::PostOpsOf(*b);
  CheckOperands(*b, plan.post_ops);
  constexpr int64_t kFloat = sizeof(float);
  plan.chunks =
      PlanChunks(plan.groups, plan.tiles, elements * (plan.src_columns + plan.dst_columns) * kFloat,
                 elements * plan.src_columns * plan.dst_columns * kFloat, plan.threads);

  if (!plan.chunks.shared) {
    plan.threads =
        static_cast<int>(std::min(int64_t{plan.threads}, plan.groups * plan.chunks.count));
  }

  auto matrices = [elements](int64_t rows, int64_t columns, const char* layout) {
    return MakeDesc({elements, rows, columns}, memory::data_type::f32, layout);
  };
  memory::desc patches = matrices(plan.chunks.tiles, plan.src_columns, "abc");
  memory::desc products = matrices(plan.chunks.tiles, plan.dst_columns, "abc");
  memory::desc filters = matrices(plan.src_columns, plan.dst_columns, "any");
  std::unique_ptr<OneThread> one;
  if (!plan.chunks.shared) one = std::make_unique<OneThread>();
  PrimitiveKey key(typeid(dnnl::matmul));
  for (const memory::desc& desc : {patches, filters, products}) key.Put(desc);
  StepDescriptor product;
  product.kind = "matmul";
  product.src = patches.get_dims();
  product.weights = filters.get_dims();
  product.dst = products.get_dims();
  PrimitivePointer made = GetPrimitive<dnnl::matmul>(key, {"", RefusalsOf(product)}, [&] {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return dnnl::matmul::primitive_desc(CpuEngine(), patches, filters, products, attr);
  });
  const dnnl::primitive_desc_base& pd = made->desc;
  if (std::string(pd.impl_info_str()).rfind("ref", 0) == 0) {
    ThrowUnsupported("Winograd without fast matrix products");
  }
  plan.matmul = made->primitive;
  one.reset();

  auto value = [&](const char* role) {
    return MemoryArgument{0, Argument::Source::kValue, b->Id(role), b->Desc(role)};
  };
  std::vector<MemoryArgument> arguments = {value("src"), value("dst")};
  post_ops::BindBiasAndPostOps(b, &arguments);
  plan.first_weights = arguments.size();
  int64_t offset = 0;
  const std::vector<MemoryArgument> matrices_of_groups =
      FiltersOf(b, variant, plan, pd.weights_desc(), &offset);
  arguments.insert(arguments.end(), matrices_of_groups.begin(), matrices_of_groups.end());
  plan.first_buffer = arguments.size();
  for (int i = 0; i < (plan.chunks.shared ? 1 : plan.threads); ++i) {
    for (const memory::desc& desc : {patches, products, pd.scratchpad_desc()}) {
      arguments.push_back({0, Argument::Source::kScratchpad, -1, desc, offset});
      offset += AlignUp(static_cast<int64_t>(desc.get_size()));
    }
  }
  b->NeedScratchpad(offset);
  b->StateError(ErrorOf(variant));
  b->AddStage(MakeStage(std::move(plan), arguments), NameOf(variant));
}

}  // namespace mxplan::winograd
