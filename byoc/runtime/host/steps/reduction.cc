// Steps that reduce axes of any place: sums, means, products, largest and smallest elements.
//
// Rows become numbers if the axis along which src stands element by element is reduced; if it is
// kept, rows are added to a row.  Sums are made in stages, so that rounding errors stay small.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "base/error.h"
#include "host/nest.h"
#include "host/steps/builders.h"

namespace mxplan::host {
namespace {

constexpr int64_t kColumns = 256;  // of a part of a row: the part stays in the nearest cache
constexpr int64_t kStageRows =
    256;  // at least, that are added to each other before they are to others
constexpr double kElementNs = 0.15;
constexpr int64_t kLongRow = 64;  // whose elements are reduced in registers
constexpr double kInRegistersNs = 0.05;

struct Reduce {
  Binary op = Binary::kAdd;
  bool mean = false;
  bool rows = false;  // the innermost axis is reduced
  // Loops over dst and over src: those that are kept, and those that are reduced but for the
  // innermost of src; that one, of src alone.
  Nest<2> kept, reduced;
  int64_t inner = 1;
  int64_t terms = 1;

  void Run(const float* src, float* dst) const {
    const int64_t elements = Elements(kept);
    const auto of_each = static_cast<double>(terms);
    if (rows && Elements(reduced) == 1) {
      ForAllRows(kept, (inner >= kLongRow ? kInRegistersNs : kElementNs) * of_each,
                 [&](const auto& offsets, int64_t outer, int64_t count) {
                   for (int64_t o = 0; o < outer; ++o) {
                     const auto along = RowStrides(kept);
                     Rows(src + offsets[1] + o * along[1], dst + offsets[0] + o * along[0], count);
                   }
                 });
      return;
    }
    if (rows) {
      ParallelFor(elements, kElementNs * of_each, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
          ForEach(kept, at, [&](const auto& offsets) { Row(src + offsets[1], dst + offsets[0]); });
        }
      });
      return;
    }
    const int64_t parts = (inner + kColumns - 1) / kColumns;
    ParallelFor(elements * parts,
                kElementNs * of_each * static_cast<double>(std::min(inner, kColumns)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t at = begin; at < end; ++at) {
                    const int64_t first = at % parts * kColumns;
                    ForEach(kept, at / parts, [&](const auto& offsets) {
                      Columns(src + offsets[1] + first, dst + offsets[0] + first,
                              std::min(kColumns, inner - first));
                    });
                  }
                });
  }

 private:
  static int64_t RootOf(int64_t number) {
    return static_cast<int64_t>(std::sqrt(static_cast<double>(number)));
  }

  float Reduced(const float* src, int64_t count) const {
    float result = 0;
    KernelsHere().reduce_rows(op, src, 0, &result, 0, {1, count});
    return result;
  }

  // As many rows as there are numbers in the innermost loop that is kept, or a part of them.
  void Rows(const float* src, float* dst, int64_t count) const {
    const auto& [to, from] = kept.back().strides;
    KernelsHere().reduce_rows(op, src, from, dst, to, {count, inner});
    for (int64_t i = 0; mean && i < count; ++i) dst[i * to] /= static_cast<float>(terms);
  }

  // One number of rows in several places.
  void Row(const float* src, float* dst) const {
    bool first = true;
    float result = 0;
    const int64_t outer = Elements(reduced);
    for (int64_t at = 0; at < outer; ++at) {
      ForEach(reduced, at, [&](const auto& offsets) {
        const float one = Reduced(src + offsets[1], inner);
        const float pair[2] = {result, one};
        result = first ? one : Reduced(pair, 2);
        first = false;
      });
    }
    *dst = mean ? result / static_cast<float>(terms) : result;
  }

  void Columns(const float* src, float* dst, int64_t count) const {
    const int64_t row = reduced.back().strides[1];
    const int64_t stage_rows = std::max(kStageRows, RootOf(reduced.back().extent));
    float stage[kColumns];
    bool first = true;
    ForRows(reduced, 0, Elements(reduced) / reduced.back().extent,
            [&](const auto& offsets, int64_t outer, int64_t rows_of) {
              for (int64_t o = 0; o < outer; ++o) {
                const float* from = src + offsets[1] + o * RowStrides(reduced)[1];
                for (int64_t done = 0; done < rows_of; done += stage_rows) {
                  const float* some = from + done * row;
                  const int64_t more = std::min(stage_rows, rows_of - done);
                  std::copy_n(some, count, stage);
                  KernelsHere().reduce_columns(op, some + row, row, more - 1, stage, count);
                  if (first) {
                    std::copy_n(stage, count, dst);
                  } else {
                    KernelsHere().reduce_columns(op, stage, 0, 1, dst, count);
                  }
                  first = false;
                }
              }
            });
    for (int64_t i = 0; mean && i < count; ++i) dst[i] /= static_cast<float>(terms);
  }
};

// In the order in which src stands; the neighbours that are kept, or reduced, as one.
std::vector<Loop<2>> Sorted(std::vector<Loop<2>> loops) {
  std::stable_sort(loops.begin(), loops.end(),
                   [](const auto& a, const auto& b) { return a.strides[1] > b.strides[1]; });
  std::vector<Loop<2>> joined;
  for (const Loop<2>& loop : loops) {
    if (loop.extent == 1) continue;
    const bool follows = !joined.empty() &&
                         joined.back().strides[0] == loop.strides[0] * loop.extent &&
                         joined.back().strides[1] == loop.strides[1] * loop.extent;
    if (follows) {
      joined.back() = {joined.back().extent * loop.extent, loop.strides};
    } else {
      joined.push_back(loop);
    }
  }
  if (joined.empty()) joined.push_back({1, {0, 1}});
  return joined;
}

// The result for no elements.
float StartOf(const std::string& algorithm) {
  using Limits = std::numeric_limits<float>;
  if (algorithm == "max") return -Limits::infinity();
  if (algorithm == "min") return Limits::infinity();
  if (algorithm == "mul") return 1.0f;
  return algorithm == "mean" ? Limits::quiet_NaN() : 0.0f;
}

// One number everywhere in dst.
void AddFilled(StepBuilder* b, float number) {
  const ResolvedValue& dst = b->Get("dst");
  Nest<1> nest;
  for (size_t i = 0; i < dst.dims.size(); ++i) {
    nest.push_back({dst.dims[i], {dst.layout.strides[i]}});
  }
  nest = Joined(std::move(nest));
  b->Add({"dst"}, [nest, number](char* const* at) {
    auto* to = reinterpret_cast<float*>(at[0]);
    const int64_t elements = Elements(nest);
    for (int64_t one = 0; one < elements; ++one) {
      ForEach(nest, one, [&](const auto& offsets) { to[offsets[0]] = number; });
    }
  });
}

}  // namespace

void BuildReduction(StepBuilder* b) {
  const std::string& algorithm = TextOf(b->step(), "algorithm");
  auto reduce = std::make_shared<Reduce>();
  reduce->mean = algorithm == "mean";
  reduce->op = algorithm == "max"   ? Binary::kMax
               : algorithm == "min" ? Binary::kMin
               : algorithm == "mul" ? Binary::kMul
                                    : Binary::kAdd;
  if (b->ComputedType("src") != Type::kF32) ThrowUnsupported("src: expected float32");
  const ResolvedValue &src = b->Get("src"), &dst = b->Get("dst");
  for (const ResolvedValue* value : {&src, &dst}) {
    if (!value->layout.blocks.empty()) {
      ThrowUnsupported("layout ", value->tag, ", expected one without blocks");
    }
  }
  if (dst.Bytes() == 0) {  // of no samples there is nothing to say
    return b->Add({"dst", "src"}, [](char* const*) {});
  }
  if (src.Bytes() == 0) return AddFilled(b, StartOf(algorithm));
  std::vector<Loop<2>> loops;
  for (size_t i = 0; i < src.dims.size(); ++i) {
    const bool reduced = src.dims[i] != dst.dims[i];
    if (reduced) reduce->terms *= src.dims[i];
    loops.push_back({src.dims[i], {reduced ? 0 : dst.layout.strides[i], src.layout.strides[i]}});
  }
  loops = Sorted(std::move(loops));
  const Loop<2> inner = loops.back();
  if (inner.strides[1] != 1 || inner.strides[0] > 1) {
    ThrowUnsupported("layouts ", src.tag, " and ", dst.tag, ", expected the same order");
  }
  loops.pop_back();
  reduce->rows = inner.strides[0] == 0 && inner.extent > 1;
  reduce->inner = inner.extent;
  for (const Loop<2>& loop : loops) {
    (loop.strides[0] == 0 ? reduce->reduced : reduce->kept).push_back(loop);
  }
  if (reduce->kept.empty()) reduce->kept.push_back({});
  if (reduce->reduced.empty()) reduce->reduced.push_back({});
  b->Add({"dst", "src"}, [reduce](char* const* at) {
    reduce->Run(reinterpret_cast<const float*>(at[1]), reinterpret_cast<float*>(at[0]));
  });
}

}  // namespace mxplan::host
