// Transforms of filters in each call; see filters.h.
#include "onednn/winograd/filters.h"

#include <omp.h>

#include <algorithm>

#include "base/error.h"
#include "program/physical_layout.h"

namespace mxplan::winograd {
namespace {

using dnnl::memory;
using Places = std::vector<int64_t>;

// The distance that each index of an axis adds to an element's place, padding included.
Places PlacesAlong(const memory::desc& desc, size_t axis) {
  const Dims padded = desc.get_padded_dims(), strides = desc.get_strides();
  const Dims blocks = desc.get_inner_blks(), axes = desc.get_inner_idxs();
  Places places;
  for (int64_t i = 0; i < padded[axis]; ++i) {
    int64_t left = i, place = 0, stride = 1;
    for (size_t block = blocks.size(); block-- > 0; stride *= blocks[block]) {
      if (axes[block] != static_cast<int64_t>(axis)) continue;
      place += left % blocks[block] * stride;
      left /= blocks[block];
    }
    places.push_back(place + left * strides[axis]);
  }
  return places;
}

// Those of all pairs of two axes.
Places PlacesOfWindow(const memory::desc& desc, size_t rows, size_t columns) {
  Places places;
  for (int64_t y : PlacesAlong(desc, rows)) {
    for (int64_t x : PlacesAlong(desc, columns)) places.push_back(y + x);
  }
  return places;
}

bool InWholeColumns(const Places& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t first = i / kColumns * kColumns;
    if (columns[i] != columns[first] + static_cast<int64_t>(i - first)) return false;
  }
  return columns.size() % kColumns == 0;
}

class FiltersStage final : public MemoryStage {
 public:
  FiltersStage(const Kernels& kernels, bool turned, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), transform_(kernels.filters), threads_(omp_get_max_threads()) {
    const memory::desc &from = arguments[0].desc, &to = arguments[1].desc;
    const Dims dims = from.get_dims();
    const size_t first = dims.size() - 4;  // the axis of output channels
    if (first > 0) groups_ = PlacesAlong(from, 0);
    outputs_ = PlacesAlong(from, first);
    inputs_ = PlacesAlong(from, first + 1);
    window_ = PlacesOfWindow(from, first + 2, first + 3);
    if (turned) std::reverse(window_.begin(), window_.end());
    output_count_ = dims[first];
    input_count_ = dims[first + 1];
    rows_ = PlacesAlong(to, 1);
    columns_ = PlacesAlong(to, 2);
    element_ = to.get_strides()[0];
    if (!InWholeColumns(columns_) || rows_.size() % kColumns != 0) {
      ThrowUnsupported("Winograd transforms filters in each call into whole vectors of channels");
    }
  }

  void Execute(dnnl_stream_t /*stream*/,
               const std::vector<dnnl_exec_arg_t>& memories) const override {
    const auto* filters = Data<const float>(memories[0]);
    const FilterPlaces from = {outputs_.data(), inputs_.data(), window_.data(), output_count_,
                               input_count_};
    const MatrixPlaces to = {rows_.data(), columns_.data(), element_};
    const auto groups = static_cast<int64_t>(groups_.size());
    const auto rows = static_cast<int64_t>(rows_.size());
    const auto columns = static_cast<int64_t>(columns_.size());
#pragma omp parallel for collapse(3) schedule(static) num_threads(threads_)
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t column = 0; column < columns; column += kColumns) {
        for (int64_t row = 0; row < rows; row += kColumns) {
          transform_(from, filters + groups_[static_cast<size_t>(group)], to,
                     Data(memories[static_cast<size_t>(1 + group)]), row, column);
        }
      }
    }
  }

 private:
  decltype(Kernels::filters) transform_;
  int threads_;
  Places groups_ = {0}, outputs_, inputs_, window_, rows_, columns_;
  int64_t output_count_ = 0, input_count_ = 0, element_ = 0;
};

}  // namespace

std::unique_ptr<const MemoryStage> MakeFiltersStage(const Kernels& kernels,
                                                    const MemoryArgument& filters, bool turned,
                                                    const std::vector<MemoryArgument>& matrices) {
  std::vector<MemoryArgument> arguments = {filters};
  arguments.insert(arguments.end(), matrices.begin(), matrices.end());
  return std::make_unique<const FiltersStage>(kernels, turned, arguments);
}

}  // namespace mxplan::winograd
