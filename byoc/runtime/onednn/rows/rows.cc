// Executables of steps on rows: normalization by the mean square, rotary places, logarithms of
// softmax; see kernels.h.
//
// Rows are read and written where they stand, in any order of axes whose last one is the innermost.
#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/rows/kernels.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace rows {

Kernels SelectKernels() { return ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)(); }

}  // namespace rows

namespace {

// Fewer numbers are done before another thread would have been woken.
constexpr int64_t kNumbersOfThread = 1 << 15;
constexpr size_t kMostAxes = 12;
constexpr size_t kMostOperands = 4;

// The axes of rows, and for each operand the bytes from one index to the next.
struct Places {
  size_t axes = 0;
  std::array<int64_t, kMostAxes> extents{};
  std::array<std::array<int64_t, kMostAxes>, kMostOperands> strides{};
  int64_t rows = 1;
};

// Calls `work` with the addresses of operands of each row, on as many threads as there is work for.
template <typename Work>
void ForRows(const Places& places, int threads, const std::array<char*, kMostOperands>& data,
             const Work& work) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const int64_t thread = omp_get_thread_num(), of = omp_get_num_threads();
    const int64_t begin = places.rows * thread / of, end = places.rows * (thread + 1) / of;
    std::array<int64_t, kMostAxes> index{};
    std::array<char*, kMostOperands> at = data;
    auto step = [&](size_t axis, int64_t by) {
      for (size_t k = 0; k < kMostOperands; ++k) {
        if (at[k] != nullptr) at[k] += by * places.strides[k][axis];
      }
    };
    int64_t rest = begin;
    for (size_t axis = places.axes; axis-- > 0;) {
      index[axis] = rest % places.extents[axis];
      rest /= places.extents[axis];
      step(axis, index[axis]);
    }
    for (int64_t row = begin; row < end; ++row) {
      work(at);
      for (size_t axis = places.axes; axis-- > 0;) {
        step(axis, 1);
        if (++index[axis] < places.extents[axis]) break;
        step(axis, -index[axis]);
        index[axis] = 0;
      }
    }
  }
}

// Operands by their places among the arguments; what `Work` does with a row of them.
template <typename Work>
class RowsStage final : public MemoryStage {
 public:
  RowsStage(const Places& places, int threads, Work work,
            const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), places_(places), threads_(threads), work_(std::move(work)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    std::array<char*, kMostOperands> data{};
    for (size_t i = 0; i < memories.size(); ++i) data.at(i) = Data<char>(memories[i]);
    ForRows(places_, threads_, data, work_);
  }

 private:
  Places places_;
  int threads_;
  Work work_;
};

// Adds a stage whose operands have the axes of dst, but for the last one, or are broadcast to them.
template <typename Work>
void AddRows(StepBuilder* b, const std::vector<const char*>& roles, Work work, const char* name) {
  if (b->Refuses(name)) b->ThrowRefused();
  const Dims& dims = b->Get("dst").dims;
  Places places;
  places.axes = dims.size() - 1;
  if (places.axes > kMostAxes) ThrowUnsupported("rank ", dims.size());
  for (size_t i = 0; i < places.axes; ++i) {
    places.extents.at(i) = dims[i];
    places.rows *= dims[i];
  }
  std::vector<MemoryArgument> arguments;
  for (size_t k = 0; k < roles.size(); ++k) {
    const dnnl::memory::desc desc = b->Fixed(roles[k]);
    arguments.push_back({0, Argument::Source::kValue, b->Id(roles[k]), desc});
    const Dims own = desc.get_dims(), strides = desc.get_strides();
    if (desc.get_inner_nblks() != 0 || (strides.back() != 1 && own.back() != 1)) {
      ThrowUnsupported(roles[k], " in layout ", TagOf(desc),
                       ", expected one whose last axis is innermost");
    }
    const auto bytes = static_cast<int64_t>(dnnl::memory::data_type_size(desc.get_data_type()));
    const bool vector = own.size() < dims.size();  // of the last axis
    for (size_t i = 0; i < places.axes; ++i) {
      places.strides.at(k).at(i) = vector || own[i] == 1 ? 0 : strides[i] * bytes;
    }
  }
  const auto threads = static_cast<int>(std::clamp<int64_t>(
      places.rows * dims.back() / kNumbersOfThread, 1,
      std::min<int64_t>(omp_get_max_threads(), std::max<int64_t>(places.rows, 1))));
  b->AddStage(std::make_unique<RowsStage<Work>>(places, threads, std::move(work), arguments), name);
}

Real RealOf(StepBuilder* b, const char* role) { return mxplan::RealOf(b->Fixed(role), role); }

void ExpectFloat(StepBuilder* b, const char* role) {
  if (RealOf(b, role) != kRealFloat) ThrowUnsupported(role, ": expected float32");
}

}  // namespace

void BuildRmsNormalization(StepBuilder* b) {
  const rows::Kernels kernels = rows::SelectKernels();
  rows::Normalization of;
  of.count = b->Get("src").dims.back();
  of.epsilon = static_cast<float>(b->Real("epsilon"));
  auto* normalize = kernels.normalize[RealOf(b, "src")][RealOf(b, "dst")];
  std::vector<const char*> roles = {"src", "dst"};
  if (b->Has("scale")) {
    ExpectFloat(b, "scale");
    roles.push_back("scale");
  }
  auto work = [of, normalize](const std::array<char*, kMostOperands>& at) {
    rows::Normalization row = of;
    row.scale = reinterpret_cast<const float*>(at[2]);
    normalize(row, at[0], at[1]);
  };
  AddRows(b, roles, work, kernels.normalization);
}

void BuildRotary(StepBuilder* b) {
  const rows::Kernels kernels = rows::SelectKernels();
  rows::Rotation of;
  of.count = b->Get("src").dims.back();
  of.width = b->Integer("width");
  of.interleaved = b->Flag("interleaved");
  of.whole_tables = b->Get("cosines").dims.back() == of.width;
  const Real type = RealOf(b, "src");
  if (RealOf(b, "dst") != type) ThrowUnsupported("src and dst of two types");
  ExpectFloat(b, "cosines");
  ExpectFloat(b, "sines");
  auto work = [of, rotate = kernels.rotate[type]](const std::array<char*, kMostOperands>& at) {
    rotate(of, at[0], reinterpret_cast<const float*>(at[2]), reinterpret_cast<const float*>(at[3]),
           at[1]);
  };
  AddRows(b, {"src", "dst", "cosines", "sines"}, work, kernels.rotation);
}

bool HasOwnLogSoftmax(StepBuilder* b) {
  return b->Integer("axis") == static_cast<int64_t>(b->Rank("src")) - 1 &&
         b->step().post_ops.empty() && !b->Refuses(rows::SelectKernels().log_softmax);
}

void BuildLogSoftmax(StepBuilder* b) {
  const rows::Kernels kernels = rows::SelectKernels();
  auto* logarithms = kernels.logarithms[RealOf(b, "src")][RealOf(b, "dst")];
  auto work = [count = b->Get("src").dims.back(), logarithms](
                  const std::array<char*, kMostOperands>& at) { logarithms(count, at[0], at[1]); };
  AddRows(b, {"src", "dst"}, work, kernels.log_softmax);
}

}  // namespace mxplan
