// The executables of convolutions of 8-bit integers; see integers.h.
#include "onednn/integers/integers.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "memory/buffer.h"
#include "onednn/integers/stages.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::integers {
namespace {

using dnnl::memory;

// Less is multiplied before another thread would have been woken.
constexpr int64_t kProductsOfThread = 1 << 20;

// --- what kernels take --------------------------------------------------------------------------

std::vector<PostOp> PostOpsOf(const StepBuilder& b) {
  return post_ops::PostOpsOf(b, 1, post_ops::Types::kAny);
}

bool IsInteger(std::optional<Number> number) {
  return number == Number::kUnsigned || number == Number::kSigned;
}

bool HasItsNumbers(StepBuilder* b) {
  const std::optional<Number> src = NumberOf(b->Desc("src")), dst = NumberOf(b->Desc("dst"));
  if (!IsInteger(src) || !dst || NumberOf(b->Desc("weights")) != Number::kSigned) return false;
  if (!b->Has("weights_scale") || (!IsInteger(dst) && b->Has("dst_scale"))) return false;
  const int64_t channels = b->Get("dst").dims[1];
  for (size_t role = 0; role < kRoles; ++role) {
    const char* name = kRoleNames[role];
    if (!b->Has(name)) continue;
    const bool integer = role == kSrcZero || role == kDstZero;
    const auto type = integer ? memory::data_type::s32 : memory::data_type::f32;
    const Dims& dims = b->Get(name).dims;
    const bool one = role != kBias && dims == Dims{1};
    const bool each = (role == kBias || role == kWeightsScale) &&
                      (dims == Dims{channels} || dims == Dims{1, channels});
    if (b->Desc(name).get_data_type() != type || !(one || each)) return false;
  }
  if (!post_ops::HasPostOps(*b, post_ops::Types::kAny)) return false;
  const std::vector<PostOp> operators = PostOpsOf(*b);
  return std::none_of(operators.begin(), operators.end(), [](const PostOp& op) {
    return op.per_channel && op.number != Number::kFloat;
  });
}

enum class Kind : uint8_t { kNone, kPointwise, kWindows, kDepthwise, kRows };

Kind KindOf(StepBuilder* b) {
  switch (ReachOf(b)) {
    case Reach::kPixel:
      return Kind::kPointwise;
    case Reach::kWindow:
      return Kind::kWindows;
    case Reach::kWindowOfChannel:
      return Kind::kDepthwise;
    default:
      return Kind::kNone;
  }
}

// True where there is no instruction that adds up products of bytes exactly.
bool MultipliesWords() {
  return HasIsa(dnnl::cpu_isa::avx2) && !HasIsa(dnnl::cpu_isa::avx2_vnni) &&
         !HasIsa(dnnl::cpu_isa::avx512_core_vnni);
}

std::vector<DenseKernel> DenseKernels() {
  std::vector<DenseKernel> found;
  if (HasIsa(dnnl::cpu_isa::avx512_core_amx)) found.push_back(AmxDense());
  if (HasIsa(dnnl::cpu_isa::avx512_core_vnni)) found.push_back(Avx512VnniDense());
  if (MultipliesWords()) found.push_back(Avx2Dense());
  return found;
}

std::string NameOf(Kind kind, const DenseKernel& kernel) {
  const char* family = kind == Kind::kPointwise ? "integers_1x1:"
                       : kind == Kind::kRows    ? "integers_rows:"
                                                : "integers_windows:";
  return std::string(family) + kernel.instructions;
}

DenseKernel NamedDense(Kind kind, const std::string& name) {
  for (const DenseKernel& kernel : DenseKernels()) {
    if (name == NameOf(kind, kernel)) return kernel;
  }
  ThrowInternal("no kernel ", name);
}

std::vector<DepthwiseKernel> DepthwiseKernels() {
  std::vector<DepthwiseKernel> found;
  if (HasIsa(dnnl::cpu_isa::avx512_core_vnni)) found.push_back(Avx512VnniDepthwise());
  if (MultipliesWords()) found.push_back(Avx2Depthwise());
  return found;
}

DepthwiseKernel NamedDepthwise(const std::string& name) {
  for (const DepthwiseKernel& kernel : DepthwiseKernels()) {
    if (name == kernel.name) return kernel;
  }
  ThrowInternal("no kernel ", name);
}

// --- building -----------------------------------------------------------------------------------

Numbers NumbersOf(StepBuilder* b) {
  Numbers numbers;
  numbers.src.is_signed = NumberOf(b->Desc("src")) == Number::kSigned;
  numbers.result.number = *NumberOf(b->Desc("dst"));
  numbers.result.pixel = b->Get("dst").dims[1];
  numbers.result.scale_per_channel = b->Get("weights_scale").dims != Dims{1};
  numbers.post_ops = PostOpsOf(*b);
  for (size_t role = 0; role < kRoles; ++role) {
    if (b->Has(kRoleNames[role])) numbers.roles.push_back(static_cast<Role>(role));
  }
  return numbers;
}

std::vector<MemoryArgument> ArgumentsOf(StepBuilder* b, const memory::desc& weights,
                                        int64_t scratch, const Packing& packing = {}) {
  auto value = [&](int id) { return MemoryArgument{0, Argument::Source::kValue, id, b->Desc(id)}; };
  std::vector<MemoryArgument> arguments = {value(b->Id("src")), value(b->Id("dst")),
                                           b->Packed(0, b->Id("weights"), weights, packing)};
  for (const char* role : kRoleNames) {
    if (b->Has(role)) arguments.push_back(value(b->Id(role)));
  }
  post_ops::BindPostOps(*b, &arguments);
  if (scratch > 0) {
    arguments.push_back({DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1,
                         MakeDesc({scratch}, memory::data_type::u8, "a")});
    b->NeedScratchpad(scratch);
  }
  b->NeedWeights(static_cast<int64_t>(weights.get_size()));
  return arguments;
}

int ThreadsFor(int64_t products) {
  return static_cast<int>(
      std::clamp<int64_t>(products / kProductsOfThread, 1, omp_get_max_threads()));
}

// Bytes of one number of src where the kernel reads it.
int64_t ItemOf(const DenseKernel& kernel) { return kFour / kernel.numbers; }

int64_t FilledUp(int64_t count, int64_t block) { return (count + block - 1) / block * block; }

// Of a matrix [channels, numbers].
const char* TagOfWeights(const DenseKernel& kernel) {
  return kernel.copies ? "AB16b16a4b" : kernel.widen ? "AB8b16a2b" : "AB4b16a4b";
}

// A pixel of dst is made of `numbers` of src, which lie one behind the other, as the weights of
// each channel do in `filters`.
void BuildPixels(StepBuilder* b, Kind kind, const DenseKernel& kernel, Dense product,
                 int64_t numbers, int64_t pixels, const memory::desc& filters) {
  const int64_t block = kernel.copies ? kTileDepth : 16;  // numbers that filters are filled up to
  product.depth = numbers * ItemOf(kernel);
  product.channels = b->Get("dst").dims[1];
  product.weights_block = FilledUp(numbers, block) * kLane;
  const int threads = ThreadsFor(pixels * numbers * product.channels);
  const Pixels all = {pixels, numbers};
  const int64_t copied = kernel.copies ? kernel.copies(product) : 0;
  const int64_t widened = kernel.widen ? all.Together(product) * product.depth : 0;
  const int64_t scratch = AlignUp(copied + widened);
  const auto matrix = [&](const char* tag) {
    return MakeDesc({product.channels, numbers}, memory::data_type::s8, tag);
  };
  const memory::desc weights = matrix(TagOfWeights(kernel));
  const Packing packing = {Packing::Kind::kReread, filters, matrix("ab")};
  const std::vector<MemoryArgument> arguments = ArgumentsOf(b, weights, threads * scratch, packing);
  b->AddStage(MakePixels(product, all, scratch, kernel, NumbersOf(b), threads, arguments),
              NameOf(kind, kernel));
}

void BuildPointwise(StepBuilder* b, const DenseKernel& kernel) {
  const Dense product(SinglePixels(b, 1));
  const memory::desc filters = MakeDesc(b->Get("weights").dims, memory::data_type::s8, "abcd");
  BuildPixels(b, Kind::kPointwise, kernel, product, b->Get("src").dims[1], PixelsOfDst(b), filters);
}

void BuildWindows(StepBuilder* b, const DenseKernel& kernel) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const Dims& window = b->Get("weights").dims;
  const int64_t row = window[3] * src[1];  // numbers of a window's
  const int64_t item = ItemOf(kernel);
  const int64_t numbers = window[2] * row;
  Bands bands = BandsOf(b, 1, kernel.copies ? numbers * dst[1] : 0);
  bands.most = std::max<int64_t>(bands.most / item, 1);
  Dense product(WindowPixels(b, bands, 1));
  product.channels = dst[1];
  for (int64_t* bytes : {&product.src_row, &product.src_pixel, &product.src_line}) *bytes *= item;
  if (kernel.copies) {
    product.weights_block = FilledUp(numbers, kTileDepth) * kLane;
  } else {
    product.depth = FilledUp(row * item, kFour);  // behind a row weights are 0
    product.weights_row = product.depth / item * kLane;
    product.weights_block = product.rows * product.weights_row;
  }
  const int64_t scratch = BandScratch(bands, product, kernel);
  const int threads = ThreadsFor(PixelsOfDst(b) * numbers * product.channels);
  // Filters as rows of windows: [channels, rows, numbers of a row], or these behind each other.
  const Dims all = {dst[1], numbers}, seen = {dst[1], row, product.rows};
  const auto filters = [&](const char* tag, const char* of_rows) {
    return kernel.copies ? MakeDesc(all, memory::data_type::s8, tag)
                         : MakeDesc(seen, memory::data_type::s8, of_rows);
  };
  const Packing as_rows = {Packing::Kind::kReread, MakeDesc(window, memory::data_type::s8, "acdb"),
                           filters("ab", "acb")};
  const memory::desc weights =
      filters(TagOfWeights(kernel), kernel.widen ? "AcB16a2b" : "AcB16a4b");
  const std::vector<MemoryArgument> arguments = ArgumentsOf(b, weights, threads * scratch, as_rows);
  b->AddStage(MakeWindows(product, bands, scratch, kernel, NumbersOf(b), threads, arguments),
              NameOf(Kind::kWindows, kernel));
}

void BuildDepthwise(StepBuilder* b, const DepthwiseKernel& kernel) {
  const Dims &src = b->Get("src").dims, &dst = b->Get("dst").dims;
  const Dims& window = b->Get("weights").dims;
  const Dims& strides = b->Integers("strides", 2, 1);
  const Dims& padding = b->Integers("padding", 4, 0);
  Numbers numbers = NumbersOf(b);
  Depthwise product;
  product.channels = src[1];
  product.height = src[2];
  product.width = src[3];
  product.dst_height = dst[2];
  product.dst_width = dst[3];
  product.rows = window[3];
  product.columns = window[4];
  product.stride_y = strides[0];
  product.stride_x = strides[1];
  product.top = padding[0];
  product.left = padding[1];
  product.result = numbers.result;
  product.result.output.post_op_count = static_cast<int>(numbers.post_ops.size());
  const int64_t pixels = dst[0] * dst[2] * dst[3];
  const int threads = ThreadsFor(pixels * dst[1] * product.rows * product.columns);
  const int64_t scratch = AlignUp(kernel.scratch(product));
  const memory::desc weights = MakeDesc(window, memory::data_type::s8, "debca");
  const std::vector<MemoryArgument> arguments = ArgumentsOf(b, weights, threads * scratch);
  b->AddStage(
      MakeDepthwise(product, dst[0], scratch, kernel, std::move(numbers), threads, arguments),
      kernel.name);
}

}  // namespace

std::vector<std::string> NamesFor(StepBuilder* b) {
  const Kind kind = KindOf(b);
  std::vector<std::string> names;
  if (kind == Kind::kNone || !HasItsNumbers(b)) return names;
  if (kind == Kind::kDepthwise) {
    for (const DepthwiseKernel& kernel : DepthwiseKernels()) names.emplace_back(kernel.name);
  } else {
    for (const DenseKernel& kernel : DenseKernels()) names.push_back(NameOf(kind, kernel));
  }
  return names;
}

bool IsFirst(StepBuilder* b, const std::vector<std::string>& names) {
  return MultipliesWords() && !names.empty() && !b->Refuses(names.front());
}

void Build(StepBuilder* b, const std::string& name) {
  const Kind kind = KindOf(b);
  if (kind == Kind::kDepthwise) return BuildDepthwise(b, NamedDepthwise(name));
  const DenseKernel kernel = NamedDense(kind, name);
  if (kind == Kind::kPointwise) {
    BuildPointwise(b, kernel);
  } else {
    BuildWindows(b, kernel);
  }
}

bool TakesRows(StepBuilder* b) {
  if (!b->IsConstant("weights") || !HasItsNumbers(b)) return false;
  const Dims& dst = b->Get("dst").dims;
  for (const char* role : {"src", "weights", "dst"}) {
    const Dims& dims = b->Get(role).dims;
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return false;
  }
  return dst.size() == 2 && TagOf(b->Desc("dst")) == "ab" &&
         IsFirst(b, {NameOf(Kind::kRows, Avx2Dense())});
}

void BuildRows(StepBuilder* b, const memory::desc& filters) {
  const Dims& dst = b->Get("dst").dims;
  int64_t numbers = 1;
  for (int64_t extent : filters.get_dims()) numbers *= extent;
  numbers /= dst[1];
  const Dense product(RowPixels(dst[0], numbers, 1));
  BuildPixels(b, Kind::kRows, Avx2Dense(), product, numbers, dst[0], filters);
}

}  // namespace mxplan::integers
