// The executable of a product with a packed matrix; see packed_product.h.
#include "onednn/packed_product/packed_product.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onednn/isa.h"
#include "onednn/layout.h"
#include "onednn/packed_product/kernels.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::packed_product {
namespace {

// oneDNN packs the matrix in every call, which is a share of its time that falls with the rows; by
// more of them than these its kernel, the faster one by itself, wins.
constexpr int64_t kMostRows = 256;
// Fewer are multiplied and added before another thread would have been woken.
constexpr int64_t kTermsOfThread = 200'000;

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kRest };

int64_t Parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

// Threads along both axes of the results.
struct Grid {
  int64_t along_rows = 1, along_columns = 1;
};

// The one whose largest share has the fewest tiles; of several, the one that reads the least.
Grid Divide(int64_t tiles, int64_t panels, int64_t threads) {
  Grid best;
  std::pair<int64_t, int64_t> least{tiles * panels + 1, 0};
  for (int64_t rows = 1; rows <= threads; ++rows) {
    const int64_t columns = threads / rows;
    const int64_t high = Parts(tiles, rows), wide = Parts(panels, columns);
    const std::pair<int64_t, int64_t> cost{high * wide, high * kTile + wide * kPanel};
    if (cost < least) {
      least = cost;
      best = {rows, columns};
    }
  }
  return best;
}

class PackedProductStage final : public MemoryStage {
 public:
  PackedProductStage(Product product, int64_t rows, Grid grid, bool bias,
                     std::vector<post_ops::PostOp> post_ops,
                     const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        product_(product),
        rows_(rows),
        grid_(grid),
        bias_(bias),
        post_ops_(std::move(post_ops)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Product product = product_;
    product.src = Data(memories[kSrc]);
    product.dst = Data(memories[kDst]);
    product.strips = Data(memories[kWeights]);
    size_t at = kRest;
    if (bias_) product.output.bias = Data(memories[at++]);
    const post_ops::FilledIn operators(post_ops_, [&] { return Data(memories[at++]); });
    product.output.post_ops = operators.data();
    product.output.post_op_count = operators.count();
    const int64_t parts = grid_.along_rows * grid_.along_columns;
    if (parts == 1) return Avx2(product, PartOf(0));
#pragma omp parallel num_threads(static_cast<int>(parts))
    {
      const int64_t threads = omp_get_num_threads();
      for (int64_t i = omp_get_thread_num(); i < parts; i += threads) Avx2(product, PartOf(i));
    }
  }

 private:
  Part PartOf(int64_t index) const {
    const int64_t row = index % grid_.along_rows, column = index / grid_.along_rows;
    const int64_t tiles = Parts(rows_, kTile), panels = Parts(product_.columns, kPanel);
    auto bound = [](int64_t count, int64_t at, int64_t of, int64_t size, int64_t most) {
      return std::min(count * at / of * size, most);
    };
    Part part;
    part.first_row = bound(tiles, row, grid_.along_rows, kTile, rows_);
    part.end_row = bound(tiles, row + 1, grid_.along_rows, kTile, rows_);
    part.first_column = bound(panels, column, grid_.along_columns, kPanel, product_.columns);
    part.end_column = bound(panels, column + 1, grid_.along_columns, kPanel, product_.columns);
    return part;
  }

  Product product_;
  int64_t rows_;
  Grid grid_;
  bool bias_;
  std::vector<post_ops::PostOp> post_ops_;  // `data` is not null where an operand is filled in
};

}  // namespace

bool Takes(StepBuilder* b) {
  if (!HasIsa(dnnl::cpu_isa::avx2) || HasIsa(dnnl::cpu_isa::avx512_core)) return false;
  for (const Operand& operand : b->step().operands) {
    if (NumberOf(b->Desc(operand.value)) != Number::kFloat) return false;
  }
  const Dims& filter = b->Get("weights").dims;
  if (std::find(filter.begin(), filter.end(), 0) != filter.end()) return false;
  const ResolvedValue& dst = b->Get("dst");
  const bool plain = dst.IsAny() || TagOf(b->Desc("dst")) == "ab";
  return dst.dims.size() == 2 && dst.dims[0] <= kMostRows && plain &&
         post_ops::HasFloatPostOps(*b) && !b->Refuses(kName);
}

void Build(StepBuilder* b, const dnnl::memory::desc& filters, int64_t columns) {
  Product product;
  product.columns = columns;
  product.depth = 1;
  for (int64_t extent : filters.get_dims()) product.depth *= extent;
  product.depth /= columns;
  const dnnl::memory::data_type type = filters.get_data_type();
  const Dims dims = {1, columns, product.depth};
  const dnnl::memory::desc strips = MakeDesc(dims, type, Concat("aBc", kStrip, "b"));
  Packing packing;
  packing.kind = Packing::Kind::kReread;
  packing.through = filters;
  packing.seen = MakeDesc(dims, type, PlainTag(dims.size()));
  auto value = [&](const char* role) {
    return MemoryArgument{0, Argument::Source::kValue, b->Id(role), b->Desc(role)};
  };
  std::vector<MemoryArgument> arguments = {value("src"), value("dst"),
                                           b->Packed(0, b->Id("weights"), strips, packing)};
  post_ops::BindBiasAndPostOps(b, &arguments);
  const int64_t rows = b->Get("dst").dims[0];
  const int64_t terms = rows * columns * product.depth;
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), terms / kTermsOfThread + 1);
  const Grid grid = Divide(Parts(rows, kTile), Parts(columns, kPanel), threads);
  b->NeedWeights(static_cast<int64_t>(strips.get_size()));
  b->AddStage(std::make_unique<PackedProductStage>(product, rows, grid, b->Has("bias"),
                                                   post_ops::PostOpsOf(*b), arguments),
              kName);
}

}  // namespace mxplan::packed_product
