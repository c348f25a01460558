// The executable of a product of rows with the matrix of their group; see kernels.h.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onednn/grouped_product/kernels.h"
#include "onednn/isa.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

using dnnl::memory;
using grouped_product::kBlock;
using grouped_product::kChunk;
using grouped_product::Kernels;
using grouped_product::kStrip;
using grouped_product::Part;
using grouped_product::Product;

// Fewer are multiplied and added, or read of matrices, before another thread would have been woken.
constexpr int64_t kTermsOfThread = 1 << 18;
constexpr int64_t kReadOfThread = 1 << 14;

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kEnds, kRest };

int64_t Parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

// Groups of rows one behind the other, then the rows behind all of them; parts of each in order.
class Walk {
 public:
  Walk(const int32_t* ends, int64_t groups, int64_t rows, int64_t chunks)
      : ends_(ends), groups_(groups), rows_(rows), chunks_(chunks) {}

  // Goes on to the next group; false behind the last.
  bool Next() {
    if (++group_ > groups_) return false;
    begin_ = end_;
    first_ += parts();
    end_ = group_ < groups_ ? std::clamp<int64_t>(ends_[group_], begin_, rows_) : rows_;
    blocks_ = Parts(end_ - begin_, kBlock);
    return true;
  }

  int64_t parts() const { return blocks_ * chunks_; }
  int64_t end() const { return first_ + parts(); }  // of the parts up to here
  bool has_matrix() const { return group_ < groups_; }

  // The part of this number, which is one of the group's.
  Part At(int64_t number, int64_t columns) const {
    const int64_t block = (number - first_) / chunks_, chunk = (number - first_) % chunks_;
    const int64_t count = end_ - begin_;
    return {has_matrix() ? group_ : -1, begin_ + count * block / blocks_,
            begin_ + count * (block + 1) / blocks_, chunk * kChunk,
            std::min(columns, (chunk + 1) * kChunk)};
  }

 private:
  const int32_t* ends_;
  int64_t groups_, rows_, chunks_;
  int64_t group_ = -1, begin_ = 0, end_ = 0, blocks_ = 0, first_ = 0;
};

class GroupedProductStage final : public MemoryStage {
 public:
  GroupedProductStage(Product product, Kernels kernels, int64_t rows, int64_t groups,
                      std::vector<post_ops::PostOp> post_ops,
                      const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        product_(product),
        kernels_(kernels),
        rows_(rows),
        groups_(groups),
        post_ops_(std::move(post_ops)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Product product = product_;
    product.src = Data(memories[kSrc]);
    product.dst = Data(memories[kDst]);
    product.strips = Data(memories[kWeights]);
    size_t next = kRest;
    const post_ops::FilledIn operators(post_ops_, [&] { return Data(memories[next++]); });
    product.post_ops = operators.data();
    product.post_op_count = operators.count();
    const int64_t chunks = Parts(product.columns, kChunk);
    const Walk start(Data<int32_t>(memories[kEnds]), groups_, rows_, chunks);
    int64_t parts = 0, matrices = 0;
    for (Walk walk = start; walk.Next(); parts = walk.end()) {
      matrices += walk.has_matrix() && walk.parts() > 0 ? 1 : 0;
    }
    const int64_t numbers = product.depth * product.columns;
    const int64_t worth = rows_ * numbers / kTermsOfThread + matrices * numbers / kReadOfThread;
    const int64_t threads = std::clamp<int64_t>(worth, 1, std::min(MostThreads(), parts));
    std::atomic<int64_t> taken{0};
    auto work = [&] {
      Walk walk = start;
      walk.Next();
      // Numbers rise, so that each thread walks over the groups once.
      for (int64_t part = taken++; part < parts; part = taken++) {
        while (walk.end() <= part) walk.Next();
        kernels_.run(product, walk.At(part, product.columns));
      }
    };
    if (threads <= 1) return work();
#pragma omp parallel num_threads(static_cast<int>(threads))
    work();
  }

 private:
  static int64_t MostThreads() { return std::max(1, omp_get_max_threads()); }

  Product product_;
  Kernels kernels_;
  int64_t rows_, groups_;
  std::vector<post_ops::PostOp> post_ops_;  // `data` is not null where an operand is filled in
};

void CheckOperands(StepBuilder* b) {
  for (const char* role : {"src", "dst"}) {
    const memory::desc desc = b->Fixed(role);
    if (!SamePlacement(desc, MakeDesc(desc.get_dims(), memory::data_type::f32, "ab"))) {
      ThrowUnsupported(role, " in layout ", TagOf(desc), ": expected float32, row by row");
    }
  }
  b->Fixed("ends");
  if (!b->IsConstant("weights")) ThrowUnsupported("weights: expected a constant, which is packed");
  if (b->Desc("weights").get_data_type() != memory::data_type::f32) {
    ThrowUnsupported("weights: expected float32");
  }
}

}  // namespace

void BuildGroupedProduct(StepBuilder* b) {
  CheckOperands(b);
  const Kernels kernels = ForThisIsa(grouped_product::Avx512Kernels, grouped_product::Avx2Kernels,
                                     grouped_product::BaseKernels)();
  if (b->Refuses(kernels.name)) b->ThrowRefused();
  const Dims weights = b->Get("weights").dims;
  const Dims filters = {weights[0], weights[2], weights[1]};
  Product product;
  product.depth = weights[1];
  product.columns = weights[2];
  Packing packing;
  packing.kind = Packing::Kind::kReread;
  packing.through = MakeDesc(weights, memory::data_type::f32, "acb");
  packing.seen = MakeDesc(filters, memory::data_type::f32, "abc");
  const memory::desc strips = MakeDesc(filters, memory::data_type::f32, Concat("aBc", kStrip, "b"));
  auto value = [&](const char* role) {
    return MemoryArgument{0, Argument::Source::kValue, b->Id(role), b->Desc(role)};
  };
  std::vector<MemoryArgument> arguments = {
      value("src"), value("dst"), b->Packed(0, b->Id("weights"), strips, packing), value("ends")};
  b->NeedWeights(static_cast<int64_t>(strips.get_size()));
  post_ops::BindPostOps(*b, &arguments);
  b->AddStage(std::make_unique<GroupedProductStage>(product, kernels, b->Get("src").dims[0],
                                                    weights[0], post_ops::PostOpsOf(*b), arguments),
              kernels.name);
}

}  // namespace mxplan
