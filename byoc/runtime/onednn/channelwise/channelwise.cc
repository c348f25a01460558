// The executable of numbers that their channel scales and shifts; see channelwise.h.
#include "onednn/channelwise/channelwise.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "onednn/channelwise/kernels.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/post_ops/cuts.h"

namespace mxplan::channelwise {
namespace {

using dnnl::memory;

// Fewer numbers are done before another thread would have been woken.
constexpr int64_t kNumbersOfThread = 1 << 15;

enum ArgumentIndex : size_t { kSrc, kDst, kVectors };

class ChannelwiseStage final : public MemoryStage {
 public:
  ChannelwiseStage(const Rows& rows, int64_t count, Run run, bool scaled, bool shifted,
                   const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        rows_(rows),
        count_(count),
        run_(run),
        scaled_(scaled),
        shifted_(shifted),
        threads_(static_cast<int>(std::clamp<int64_t>(count * rows.channels / kNumbersOfThread, 1,
                                                      omp_get_max_threads()))) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Rows rows = rows_;
    size_t at = kVectors;
    if (scaled_) rows.scale = Data(memories[at++]);
    if (shifted_) rows.shift = Data(memories[at]);
    const void* src = Data<void>(memories[kSrc]);
    void* dst = Data<void>(memories[kDst]);
    if (threads_ == 1) return run_(rows, src, dst, 0, count_);
#pragma omp parallel num_threads(threads_)
    {
      const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      run_(rows, src, dst, count_ * thread / threads, count_ * (thread + 1) / threads);
    }
  }

 private:
  Rows rows_;
  int64_t count_;
  Run run_;
  bool scaled_, shifted_;
  int threads_;
};

// A step's effect on its channels.
struct Channels {
  size_t axis = 0;
  int scale = -1, shift = -1;  // values
  post_ops::Cuts cuts;
};

// The axis along which a vector stands; nothing where it is no vector of dst's channels in float32.
std::optional<size_t> AxisOf(const memory::desc& vector, const Dims& dst) {
  const Dims dims = vector.get_dims();
  if (vector.get_data_type() != memory::data_type::f32 || vector.get_inner_nblks() != 0 ||
      dims.size() != dst.size()) {
    return std::nullopt;
  }
  std::optional<size_t> axis;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (axis || dims[i] != dst[i]) return std::nullopt;
    axis = i;
  }
  return axis;
}

std::optional<Channels> ChannelsOf(const StepBuilder& b) {
  const Dims& dst = b.Get("dst").dims;
  const std::optional<size_t> axis = AxisOf(b.Desc("src1"), dst);
  const std::string& algorithm = b.Text("algorithm");
  if (!axis || (algorithm != "mul" && algorithm != "add")) return std::nullopt;
  Channels channels;
  channels.axis = *axis;
  (algorithm == "mul" ? channels.scale : channels.shift) = b.Id("src1");
  const auto& ops = b.step().post_ops;
  auto op = ops.begin();
  const bool adds = op != ops.end() && op->kind == PostOp::Kind::kBinary &&
                    op->algorithm == "add" && AxisOf(b.Desc(op->value), dst) == axis;
  if (channels.shift < 0 && adds) channels.shift = (op++)->value;
  for (; op != ops.end(); ++op) {
    if (!channels.cuts.Add(*op)) return std::nullopt;
  }
  return channels;
}

// Whether a tensor is rows of channels without gaps.
bool IsRows(const memory::desc& desc, size_t axis) {
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_inner_nblks() == 0 &&
         desc.get_submemory_offset() == 0 && IsDense(desc) && desc.get_strides()[axis] == 1;
}

// Whether both sides are real, and one of them is short: oneDNN's are as fast in float32.
bool HasItsTypes(const memory::desc& src, const memory::desc& dst) {
  const bool floats = NumberOf(src) == Number::kFloat && NumberOf(dst) == Number::kFloat;
  return IsReal(src) && IsReal(dst) && !floats;
}

}  // namespace

bool Build(StepBuilder* b) {
  const memory::desc src = b->Desc("src");
  memory::desc dst = b->Desc("dst");
  if (!HasIsa(dnnl::cpu_isa::avx512_core_bf16) || IsEmpty(src) || !HasItsTypes(src, dst)) {
    return false;
  }
  const Kernel kernel = Avx512Bf16Kernel();
  const std::optional<Channels> channels = ChannelsOf(*b);
  if (!channels || !IsRows(src, channels->axis) || b->Refuses(kernel.name)) return false;
  if (b->Get("dst").IsAny()) {
    dst = MakeDesc(b->Get("dst").dims, dst.get_data_type(), TagOf(src));
  }
  if (!IsRows(dst, channels->axis) || src.get_strides() != dst.get_strides()) return false;
  dst = b->FixedLike("dst", src);
  std::vector<MemoryArgument> arguments;
  const auto add = [&](int id) {
    arguments.push_back({0, Argument::Source::kValue, id, b->Desc(id)});
  };
  add(b->Id("src"));
  add(b->Id("dst"));
  for (int id : {channels->scale, channels->shift}) {
    if (id >= 0) add(id);
  }
  Rows rows;
  rows.channels = dst.get_dims()[channels->axis];
  rows.least = channels->cuts.least;
  rows.most = channels->cuts.most;
  int64_t count = 1;
  for (int64_t extent : dst.get_dims()) count *= extent;
  b->AddStage(std::make_unique<ChannelwiseStage>(
                  rows, count / rows.channels, kernel.run[RealOf(src, "src")][RealOf(dst, "dst")],
                  channels->scale >= 0, channels->shift >= 0, arguments),
              kernel.name);
  return true;
}

}  // namespace mxplan::channelwise
