// The steps that errata are about; see errata.h.
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "onednn/isa.h"
#include "onednn/primitives/errata.h"
#include "program/step_text.h"

namespace mxplan {
namespace {

// The largest number but the last one, at least 1.
int64_t LargestOfRows(const Dims& numbers) {
  int64_t largest = 1;
  for (size_t i = 0; i + 1 < numbers.size(); ++i) largest = std::max(largest, numbers[i]);
  return largest;
}

// The most pixels of dst along an axis that no window of a transposed convolution reaches, between
// two or behind the last one; negative where windows overlap.
int64_t LargestGap(const StepDescriptor& step) {
  int64_t largest = INT64_MIN;
  for (size_t i = 0; i < std::min(step.kernel.size(), step.strides.size()); ++i) {
    const size_t axis = 2 + i;
    largest = std::max(largest, step.strides[i] - step.kernel[i]);
    if (axis >= std::min(step.src.size(), step.dst.size()) || i >= step.padding.size()) continue;
    const int64_t dilation = i < step.dilation.size() ? step.dilation[i] : 1;
    const int64_t end = (step.src[axis] - 1) * step.strides[i] - step.padding[i] +
                        (step.kernel[i] - 1) * dilation + 1;
    if (step.kind == "deconvolution") largest = std::max(largest, step.dst[axis] - end);
  }
  return largest;
}

bool Is(Presence wanted, bool there) {
  return wanted == Presence::kAny || (wanted == Presence::kSome) == there;
}

bool HoldsOrder(Order wanted, const std::string& layout, size_t rank) {
  bool blocked = layout.size() > rank;
  bool plain = layout == PlainTag(rank);
  switch (wanted) {
    case Order::kPlain:
      return plain;
    case Order::kChannelsLast:
      return !plain && !blocked;
    case Order::kBlocked:
      return blocked;
    case Order::kNotPlain:
      return !plain;
    default:
      return true;
  }
}

// An axis, or several that lie together in both tensors.
struct Run {
  int64_t extent, src_stride, dst_stride;
};

// The places of a tensor's elements as runs, in dst's order from the innermost one on.  Layouts are
// without blocks.
std::vector<Run> Runs(const Dims& dims, const std::string& src, const std::string& dst) {
  std::vector<int64_t> src_strides(dims.size());
  int64_t stride = 1;
  for (auto axis = src.rbegin(); axis != src.rend(); ++axis) {
    src_strides.at(static_cast<size_t>(*axis - 'a')) = stride;
    stride *= dims.at(static_cast<size_t>(*axis - 'a'));
  }
  std::vector<Run> runs;
  stride = 1;
  for (auto axis = dst.rbegin(); axis != dst.rend(); ++axis) {
    auto at = static_cast<size_t>(*axis - 'a');
    if (dims[at] == 1) continue;
    if (!runs.empty() && src_strides[at] == runs.back().src_stride * runs.back().extent) {
      runs.back().extent *= dims[at];
    } else {
      runs.push_back({dims[at], src_strides[at], stride});
    }
    stride *= dims[at];
  }
  return runs;
}

// Whether oneDNN may choose to read a conversion's src in its own order.  Its choice also depends
// on the size of the first-level cache and on strides in src; blocks are not looked into.
bool MayReadByRows(const StepDescriptor& step) {
  constexpr int64_t kFew = 16;  // elements in a row, for which it follows dst
  constexpr int64_t kWide = 4;  // elements that it writes at once, where rows of dst hold so many
  const std::string& dst = step.dst_layout;
  std::string src = step.src_layout == "any" ? PlainTag(step.src.size()) : step.src_layout;
  if (src == dst || dst == "any") return false;
  if (src.size() != step.src.size() || dst.size() != step.src.size()) return true;
  std::vector<Run> runs = Runs(step.src, src, dst);
  auto dense =
      std::find_if(runs.begin(), runs.end(), [](const Run& run) { return run.src_stride == 1; });
  if (dense == runs.begin() || dense == runs.end() || dense->dst_stride % kWide == 0) return false;
  return runs.front().extent > kFew || dense != runs.begin() + 1;
}

bool HasZeroPoint(const StepDescriptor& step) {
  return NamesOperand(step.text, "src_zero_point") || NamesOperand(step.text, "dst_zero_point");
}

// Whether there are channels, and they do not fill blocks; true for blocks of 0.
bool IsNoMultiple(const Dims& dims, int64_t block) {
  return block == 0 || (dims.size() > 1 && dims[1] % block != 0);
}

bool HasPostOp(const Condition& wanted, const std::vector<PostOp>& post_ops) {
  std::string algorithm = wanted.post_op_algorithm;
  return !wanted.post_op || std::any_of(post_ops.begin(), post_ops.end(), [&](const PostOp& op) {
    return op.kind == *wanted.post_op && (algorithm.empty() || op.algorithm == algorithm);
  });
}

bool MultipliesBytes(const StepDescriptor& step) {
  std::string type = TypeOfOperand(step.text, "src");
  return (type == "uint8" || type == "int8") && !step.weights.empty();
}

}  // namespace

bool Holds(const Condition& condition, const StepDescriptor& step) {
  bool has_epilogue = step.has_bias || !step.post_ops.empty();
  return (condition.kind[0] == '\0' || condition.kind == step.kind) &&
         (condition.algorithm[0] == '\0' || condition.algorithm == step.algorithm) &&
         Is(condition.epilogue, has_epilogue) && HasPostOp(condition, step.post_ops) &&
         HoldsOrder(condition.order, step.src_layout, step.src.size()) &&
         HoldsOrder(condition.dst_order, step.dst_layout, step.dst.size()) &&
         IsNoMultiple(step.src, condition.not_multiple) &&
         IsNoMultiple(step.dst, condition.dst_not_multiple) &&
         condition.src_channels.Has(step.SrcChannels()) &&
         condition.dst_channels.Has(step.DstChannels()) && condition.groups.Has(step.groups) &&
         condition.kernel_rows.Has(LargestOfRows(step.kernel)) &&
         condition.row_stride.Has(LargestOfRows(step.strides)) &&
         condition.gap.Has(LargestGap(step)) &&
         Is(condition.byte_products, MultipliesBytes(step)) &&
         (!condition.no_vnni || !HasIsa(dnnl::cpu_isa::avx512_core_vnni)) &&
         (!condition.zero_point || HasZeroPoint(step)) &&
         (!condition.reads_by_rows || MayReadByRows(step));
}

bool IsOfThisVersion(const Erratum& erratum) {
  const dnnl_version_t* loaded = dnnl_version();
  Version version = {loaded->major, loaded->minor, loaded->patch};
  return erratum.first <= version && version <= erratum.last;
}

}  // namespace mxplan
