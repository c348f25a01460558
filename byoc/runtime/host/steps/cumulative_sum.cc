// Steps that sum along one axis up to each place.
#include <algorithm>

#include "host/steps/builders.h"
#include "host/steps/lines.h"

namespace mxplan::host {
namespace {

struct CumulativeSum {
  Lines lines;
  Type type;
  Cumulation way;
  int64_t bytes;

  void Run(const char* src, char* dst) const {
    if (lines.inner == 1) {
      constexpr double kElementNs = 0.3;
      ParallelFor(lines.outer, kElementNs * static_cast<double>(lines.extent),
                  [&](int64_t begin, int64_t end) {
                    const int64_t first = begin * lines.extent * bytes;
                    KernelsHere().cumulative_rows(type, way, src + first, dst + first,
                                                  {end - begin, lines.extent});
                  });
      return;
    }
    const int64_t parts = (lines.inner + kMostColumns - 1) / kMostColumns;
    const double element_ns = 0.04 * static_cast<double>(bytes);
    const auto of_part = static_cast<double>(lines.extent * std::min(lines.inner, kMostColumns));
    ParallelFor(lines.outer * parts, element_ns * of_part, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t column = at % parts * kMostColumns;
        const int64_t first = (at / parts * lines.extent * lines.inner + column) * bytes;
        KernelsHere().cumulative_columns(
            type, way, src + first, dst + first, lines.inner,
            {lines.extent, std::min(kMostColumns, lines.inner - column)});
      }
    });
  }
};

}  // namespace

void BuildCumulativeSum(StepBuilder* b) {
  CumulativeSum step;
  step.lines = LinesOf(*b);
  step.type = b->ComputedType("src");
  if (step.type == Type::kI8 || step.type == Type::kU8 || step.type == Type::kBool) {
    ThrowUnsupported("src: ", b->Dtype("src"),
                     ", expected float32, float64, int32 or int64, which sums are made in");
  }
  step.bytes = b->ElementBytes("src");
  step.way = {FlagOf(b->step(), "exclusive"), FlagOf(b->step(), "reverse")};
  if (b->Get("src").Bytes() == 0) return b->Add({"dst", "src"}, [](char* const*) {});
  b->Add({"dst", "src"}, [step](char* const* at) { step.Run(at[1], at[0]); });
}

}  // namespace mxplan::host
