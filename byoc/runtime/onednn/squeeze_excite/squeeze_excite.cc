// The executable of squeeze-and-excite; see kernels.h.
//
// The image is gone over twice: for means and for pixels times their gates, in one team of threads.
//
//   whole samples   each thread has samples of its own, from their means to their pixels
//   channels        each thread has channels of all samples: it waits for the others' means, and
//                   where the products between are worth sharing, for their part of those
#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/squeeze_excite/kernels.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace squeeze_excite {
namespace {

using dnnl::memory;

constexpr int64_t kNumbersOfThread = 1 << 14;   // fewer are done before another thread has woken
constexpr int64_t kProductsOfThread = 1 << 13;  // likewise, before threads have waited for another
constexpr int64_t kWeightsOfSample = 1 << 15;   // as many may be read again for each sample
constexpr int64_t kLine = 16;                   // floats that threads write without disturbing

enum ArgumentIndex : size_t { kSrc, kDst, kScratch, kWeights };

Kernels SelectKernels() {
  return HasIsa(dnnl::cpu_isa::avx512_core_bf16)
             ? Avx512Bf16Kernels()
             : ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)();
}

int64_t Filled(int64_t count, int64_t whole) { return (count + whole - 1) / whole * whole; }

// Everything that is known before a call.
struct Plan {
  Kernels kernels;
  Real type = kRealFloat;
  Image image;
  int64_t samples = 0, sample_bytes = 0;
  int64_t stored = 0;  // channels with those that fill up the last block
  Product first, second;
  bool two = false;     // products
  bool shared = false;  // the first one's rows by all threads
  bool whole_samples = false;
  int threads = 1;
  std::vector<post_ops::PostOp> post_ops;
};

class SqueezeExciteStage final : public MemoryStage {
 public:
  // Operands of products by their places among the arguments, those of post-ops behind them.
  struct Places {
    size_t bias = 0, gate_weights = 0, gate_bias = 0;  // 0: none
    std::vector<size_t> others;
  };

  SqueezeExciteStage(Plan plan, Places places, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), plan_(std::move(plan)), places_(std::move(places)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Call call;
    call.src = Data<char>(memories[kSrc]);
    call.dst = Data<char>(memories[kDst]);
    call.means = Data(memories[kScratch]);
    call.first = plan_.first;
    call.second = plan_.second;
    call.first.weights = Data<char>(memories[kWeights]);
    auto floats = [&](size_t place) { return place == 0 ? nullptr : Data(memories[place]); };
    call.first.bias = floats(places_.bias);
    if (plan_.two) {
      call.second.weights = Data<char>(memories[places_.gate_weights]);
      call.second.bias = floats(places_.gate_bias);
    }
    call.middle = call.means + plan_.samples * plan_.first.src_stride;
    call.gates = plan_.two ? call.middle + plan_.samples * plan_.first.dst_stride : call.middle;
    for (size_t op = 0; op < places_.others.size(); ++op) {
      const size_t place = places_.others[op];
      call.others.at(op) = place == 0 ? nullptr : Data<char>(memories[place]);
    }
    if (plan_.threads == 1) {
      Run(call, 0, 1);
      return;
    }
#pragma omp parallel num_threads(plan_.threads)
    Run(call, omp_get_thread_num(), omp_get_num_threads());
  }

 private:
  struct Call {
    const char* src = nullptr;
    char* dst = nullptr;
    Product first, second;
    float *means = nullptr, *middle = nullptr, *gates = nullptr;
    std::array<const char*, post_ops::kMaxPostOps> others{};
  };

  void Run(const Call& call, int64_t thread, int64_t threads) const {
    const int64_t samples = plan_.samples;
    if (plan_.whole_samples) {
      for (int64_t sample = samples * thread / threads; sample < samples * (thread + 1) / threads;
           ++sample) {
        Means(call, sample, 0, plan_.stored);
        Middle(call, sample, 1, 0, plan_.first.outputs);
        Gates(call, sample, 1, 0, plan_.image.channels);
        Pixels(call, sample, 0, plan_.stored);
      }
      return;
    }
    const int64_t begin = Bound(plan_.stored, thread, threads);
    const int64_t end = Bound(plan_.stored, thread + 1, threads);
    for (int64_t sample = 0; sample < samples; ++sample) Means(call, sample, begin, end);
    Wait(threads);
    // The gates of this thread's channels are all that it needs.
    const int64_t last = std::min(end, plan_.image.channels);
    if (!plan_.two) {
      Middle(call, 0, samples, begin, last);
    } else if (plan_.shared) {
      const int64_t outputs = plan_.first.outputs;
      Middle(call, 0, samples, Bound(outputs, thread, threads),
             Bound(outputs, thread + 1, threads));
      Wait(threads);
    } else {
      if (thread == 0) Middle(call, 0, samples, 0, plan_.first.outputs);
      Wait(threads);
    }
    Gates(call, 0, samples, begin, last);
    for (int64_t sample = 0; sample < samples; ++sample) Pixels(call, sample, begin, end);
  }

  // Until all threads of the team are here.
  static void Wait(int64_t threads) {
    if (threads == 1) return;
#pragma omp barrier
  }

  // The begin of a thread's share: at a line, which is as long as a block or longer.
  static int64_t Bound(int64_t count, int64_t thread, int64_t threads) {
    const int64_t lines = (count + kLine - 1) / kLine;
    return std::min(count, lines * thread / threads * kLine);
  }

  void Means(const Call& call, int64_t sample, int64_t begin, int64_t end) const {
    plan_.kernels.means[plan_.type](plan_.image, call.src + sample * plan_.sample_bytes, begin, end,
                                    call.means + sample * plan_.first.src_stride);
  }

  void Middle(const Call& call, int64_t sample, int64_t samples, int64_t begin, int64_t end) const {
    Product product = call.first;
    product.samples = samples;
    plan_.kernels.by_rows[plan_.type](product, call.means + sample * product.src_stride, begin, end,
                                      call.middle + sample * product.dst_stride);
  }

  void Gates(const Call& call, int64_t sample, int64_t samples, int64_t begin, int64_t end) const {
    if (!plan_.two) return;
    Product product = call.second;
    product.samples = samples;
    plan_.kernels.by_columns[plan_.type](product, call.middle + sample * product.src_stride, begin,
                                         end, call.gates + sample * product.dst_stride);
  }

  void Pixels(const Call& call, int64_t sample, int64_t begin, int64_t end) const {
    const int64_t at = sample * plan_.sample_bytes;
    const int64_t width = plan_.two ? plan_.second.dst_stride : plan_.first.dst_stride;
    std::array<const void*, post_ops::kMaxPostOps> others{};
    for (size_t op = 0; op < places_.others.size(); ++op) {
      others.at(op) = call.others.at(op) == nullptr ? nullptr : call.others.at(op) + at;
    }
    const Ending ending{plan_.post_ops.data(), others.data(),
                        static_cast<int64_t>(plan_.post_ops.size())};
    float* gates = call.gates + sample * width;
    // Channels that fill a block up are 0, and stay that by any number.
    if (begin < end && end > plan_.image.channels) {
      std::fill(gates + plan_.image.channels, gates + end, 0.0F);
    }
    plan_.kernels.scale[plan_.type](plan_.image, call.src + at, begin, end, gates, ending,
                                    call.dst + at);
  }

  Plan plan_;
  Places places_;
};

Image ImageOf(const memory::desc& desc) {
  const Dims dims = desc.get_dims(), strides = desc.get_strides();
  Image image;
  image.channels = dims[1];
  image.pixels = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) image.pixels *= dims[axis];
  image.group_stride = strides[1];
  if (desc.get_inner_nblks() == 1 && desc.get_inner_idxs()[0] == 1) {
    image.together = desc.get_inner_blks()[0];
    image.pixel_stride = PlaceStride(dims, strides, image.together);
    if (image.pixel_stride >= image.together && kLine % image.together == 0) return image;
  } else if (desc.get_inner_nblks() == 0) {
    image.pixel_stride = PlaceStride(dims, strides, image.channels);
    if (image.pixel_stride == 1 && image.pixels > 1) return image;  // pixels side by side
    image.together = image.channels;
    if (strides[1] == 1 && image.pixel_stride >= image.channels) return image;
  }
  ThrowUnsupported("src in layout ", TagOf(desc),
                   ", expected channels or pixels side by side, or channels in blocks");
}

post_ops::PostOp FunctionOf(StepBuilder* b, const char* name, const char* alpha, const char* beta) {
  return post_ops::FunctionOf(b->Text(name), b->Real(alpha), b->Real(beta));
}

// A matrix in the order of kernels, packed where it stands in another one.
MemoryArgument Matrix(StepBuilder* b, const char* role, memory::format_tag order) {
  if (!b->IsConstant(role)) ThrowUnsupported(role, ": expected a constant");
  const memory::desc given = b->Desc(role);
  return b->Packed(0, b->Id(role), {given.get_dims(), given.get_data_type(), order});
}

}  // namespace
}  // namespace squeeze_excite

void BuildSqueezeExcite(StepBuilder* b) {
  namespace se = squeeze_excite;
  se::Plan plan;
  plan.kernels = se::SelectKernels();
  if (b->Refuses(plan.kernels.name)) b->ThrowRefused();
  const dnnl::memory::desc src = b->Fixed("src"), dst = b->FixedLike("dst", src);
  if (!SamePlacement(src, dst) || src.get_data_type() != dst.get_data_type()) {
    ThrowUnsupported("dst in layout ", TagOf(dst), ", expected that of src, ", TagOf(src));
  }
  plan.type = RealOf(src, "src");
  plan.image = se::ImageOf(src);
  plan.samples = src.get_dims()[0];
  plan.stored = src.get_padded_dims()[1];
  const auto bytes = static_cast<int64_t>(dnnl::memory::data_type_size(src.get_data_type()));
  plan.sample_bytes = src.get_strides()[0] * bytes;
  plan.two = b->Has("gate_weights");
  plan.post_ops = post_ops::PostOpsOf(*b);

  const int64_t channels = plan.image.channels, outputs = b->Get("weights").dims[0];
  const int64_t wide = se::Filled(channels, se::kLine), narrow = se::Filled(outputs, se::kLine);
  plan.first.inputs = channels;
  plan.first.outputs = outputs;
  plan.first.src_stride = wide;
  plan.first.dst_stride = narrow;
  plan.first.function = se::FunctionOf(b, "function", "function_alpha", "function_beta");
  plan.second.inputs = outputs;
  plan.second.outputs = channels;
  plan.second.src_stride = narrow;
  plan.second.dst_stride = wide;
  plan.second.function = se::FunctionOf(b, "gate", "gate_alpha", "gate_beta");
  if (!plan.two) plan.first.function = plan.second.function;

  using dnnl::memory;
  const int64_t floats = plan.samples * (wide + narrow + (plan.two ? wide : 0));
  const memory::desc scratch({floats}, memory::data_type::f32, memory::format_tag::a);
  auto value = [&](int id) {
    return MemoryArgument{0, Argument::Source::kValue, id, b->Fixed(id)};
  };
  std::vector<MemoryArgument> arguments = {value(b->Id("src")),
                                           value(b->Id("dst")),
                                           {0, Argument::Source::kScratchpad, -1, scratch},
                                           se::Matrix(b, "weights", memory::format_tag::ab)};
  se::SqueezeExciteStage::Places places;
  auto vector = [&](const char* role) -> size_t {
    if (!b->Has(role)) return 0;
    if (b->Fixed(role).get_data_type() != memory::data_type::f32) {
      ThrowUnsupported(role, ": expected float32");
    }
    arguments.push_back(value(b->Id(role)));
    return arguments.size() - 1;
  };
  auto expect_type = [&](const char* role) {
    if (RealOf(b->Desc(role), role) != plan.type) ThrowUnsupported(role, ": not of src's type");
  };
  expect_type("weights");
  places.bias = vector("bias");
  if (plan.two) {
    expect_type("gate_weights");
    arguments.push_back(se::Matrix(b, "gate_weights", memory::format_tag::ba));
    places.gate_weights = arguments.size() - 1;
    places.gate_bias = vector("gate_bias");
  }
  for (size_t op = 0; op < plan.post_ops.size(); ++op) {
    const PostOp& given = b->step().post_ops[op];
    places.others.push_back(0);
    if (given.kind != PostOp::Kind::kBinary) continue;
    const memory::desc other = b->Fixed(given.value);
    if (!SamePlacement(other, dst) || other.get_data_type() != dst.get_data_type()) {
      ThrowUnsupported("an operand of a post-op that is not stored as dst is");
    }
    arguments.push_back(value(given.value));
    places.others.back() = arguments.size() - 1;
  }

  const int64_t weights = channels * outputs * (plan.two ? 2 : 1);
  const int64_t numbers = plan.samples * (channels * plan.image.pixels + weights);
  const auto threads = std::min<int64_t>(omp_get_max_threads(), numbers / se::kNumbersOfThread + 1);
  plan.whole_samples = plan.samples % threads == 0 && weights <= se::kWeightsOfSample;
  const int64_t most = plan.whole_samples ? plan.samples : wide / se::kLine;
  plan.threads = static_cast<int>(std::min(threads, most));
  plan.shared = plan.samples * channels * outputs > se::kProductsOfThread;
  b->NeedScratchpad(floats * static_cast<int64_t>(sizeof(float)));
  b->NeedWeights(weights * bytes);
  b->AddStage(std::make_unique<se::SqueezeExciteStage>(plan, places, arguments), plan.kernels.name);
}

}  // namespace mxplan
