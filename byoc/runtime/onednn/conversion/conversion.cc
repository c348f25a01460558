// The executable of a conversion; see conversion.h.
#include "onednn/conversion/conversion.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "onednn/conversion/kernels.h"
#include "onednn/isa.h"
#include "onednn/layout.h"

namespace mxplan::conversion {
namespace {

using dnnl::memory;

// Fewer numbers are done before another thread would have been woken.
constexpr int64_t kNumbersOfThread = 1 << 15;
constexpr int64_t kPiece = 4096;        // numbers side by side that are converted at once
constexpr int64_t kColumns = 256;       // likewise, of rows that become columns
constexpr int64_t kShortestRow = 256;   // oneDNN's loops over shorter ones take less
constexpr int64_t kFewestColumns = 16;  // fewer do not fill a vector

// One loop over numbers: how many, and how far they are from each other on both sides.
struct Axis {
  int64_t extent = 1, from = 0, to = 0;
};

// Blocks of numbers that are alike: side by side on both sides, or rows that become columns.
struct Nest {
  std::vector<Axis> outer;  // over blocks
  int64_t columns = 1;      // numbers of src side by side in a block, of which pieces are done
  // Of rows that become columns; rows is 0 where nothing is turned.
  Turn turn = {0, 0, 0, 1};
};

bool IsPlain(const memory::desc& desc) {
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_inner_nblks() == 0 &&
         desc.get_submemory_offset() == 0 && IsDense(desc);
}

// Axes of more than one element, dst's slowest first, those that follow each other on both sides as
// one.
std::vector<Axis> AxesOf(const memory::desc& src, const memory::desc& dst) {
  const Dims extents = src.get_dims(), from = src.get_strides(), to = dst.get_strides();
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] > 1) axes.push_back({extents[i], from[i], to[i]});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.extent * axis.from &&
        merged.back().to == axis.extent * axis.to) {
      merged.back() = {merged.back().extent * axis.extent, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

// A few numbers that stay side by side move as one, which any instructions do.
template <int64_t kBytes>
void TurnTogether(const void* from, const Turn& turn, const Scales&, void* to) {
  constexpr int64_t kTile = 8;  // columns, whose numbers fill a line of the cache
  const char* src = static_cast<const char*>(from);
  char* dst = static_cast<char*>(to);
  for (int64_t first = 0; first < turn.columns; first += kTile) {
    const int64_t end = std::min(first + kTile, turn.columns);
    for (int64_t row = 0; row < turn.rows; ++row) {
      for (int64_t column = first; column < end; ++column) {
        std::memcpy(dst + (column * turn.to_row + row) * kBytes,
                    src + (row * turn.from_row + column) * kBytes, kBytes);
      }
    }
  }
}

// For so many floats.
Turned TogetherFor(int64_t floats) {
  constexpr int64_t kFloat = sizeof(float);
  switch (floats) {
    case 2:
      return TurnTogether<2 * kFloat>;
    case 3:
      return TurnTogether<3 * kFloat>;
    case 4:
      return TurnTogether<4 * kFloat>;
    case 8:
      return TurnTogether<8 * kFloat>;
    default:
      return nullptr;
  }
}

// Takes the last axis from those of floats in another order, if they move together along it: the
// floats of an item, which strides then count; 1 where there is no such axis.
int64_t TakeTogether(std::vector<Axis>* axes, Kernels* kernels) {
  if (axes->size() < 3 || axes->back().from != 1 || kernels->flat != nullptr) return 1;
  const int64_t floats = axes->back().extent;
  const Turned turned = TogetherFor(floats);
  if (turned == nullptr) return 1;
  kernels->turned = turned;
  axes->pop_back();
  for (Axis& axis : *axes) {
    axis.from /= floats;
    axis.to /= floats;
  }
  return floats;
}

// Nothing where kernels would find too little side by side.
std::optional<Nest> NestOf(std::vector<Axis> axes, const Kernels& kernels, int64_t fewest_columns) {
  Nest nest;
  if (axes.empty()) return kernels.flat == nullptr ? std::nullopt : std::optional(nest);
  const Axis last = axes.back();
  axes.pop_back();
  if (last.from == 1) {
    if (kernels.flat == nullptr) return std::nullopt;
    if (!axes.empty() && last.extent < kShortestRow) return std::nullopt;
    nest.columns = last.extent;
    nest.outer = std::move(axes);
    return nest;
  }
  auto side =
      std::find_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.from == 1; });
  if (side == axes.end() || side->extent < fewest_columns || kernels.turned == nullptr) {
    return std::nullopt;
  }
  nest.columns = side->extent;
  nest.turn = {last.extent, 0, last.from, side->to};
  axes.erase(side);
  nest.outer = std::move(axes);
  return nest;
}

enum ArgumentIndex : size_t { kSrc, kDst, kNumbers };
enum Role : size_t { kSrcScale, kSrcZero, kDstScale, kDstZero, kRoles };
constexpr const char* kRoleNames[kRoles] = {"src_scale", "src_zero_point", "dst_scale",
                                            "dst_zero_point"};

class ConversionStage final : public MemoryStage {
 public:
  // `roles` are those of the arguments behind src and dst.
  ConversionStage(Nest nest, const Kernels& kernels, std::pair<int64_t, int64_t> item_bytes,
                  std::vector<Role> roles, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        nest_(std::move(nest)),
        kernels_(kernels),
        item_bytes_(std::move(item_bytes)),
        roles_(std::move(roles)) {
    const bool turns = nest_.turn.rows > 0;
    piece_ = turns ? kColumns : kPiece;
    pieces_ = (nest_.columns + piece_ - 1) / piece_;
    works_ = pieces_;
    for (const Axis& axis : nest_.outer) works_ *= axis.extent;
    const int64_t numbers = works_ / pieces_ * nest_.columns * (turns ? nest_.turn.rows : 1);
    threads_ =
        static_cast<int>(std::clamp<int64_t>(numbers / kNumbersOfThread, 1, omp_get_max_threads()));
  }

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Scales scales;
    for (size_t i = 0; i < roles_.size(); ++i) {
      const void* data = Data<char>(memories[kNumbers + i]);
      switch (roles_[i]) {
        case kSrcScale:
          scales.src = *static_cast<const float*>(data);
          break;
        case kSrcZero:
          scales.src_zero = *static_cast<const int32_t*>(data);
          break;
        case kDstScale:
          scales.dst = *static_cast<const float*>(data);
          break;
        default:
          scales.dst_zero = *static_cast<const int32_t*>(data);
          break;
      }
    }
    const char* src = Data<char>(memories[kSrc]);
    char* dst = Data<char>(memories[kDst]);
    if (threads_ == 1) return Convert(src, dst, scales, 0, works_);
#pragma omp parallel num_threads(threads_)
    {
      const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      Convert(src, dst, scales, works_ * thread / threads, works_ * (thread + 1) / threads);
    }
  }

 private:
  void Convert(const char* src, char* dst, const Scales& scales, int64_t begin, int64_t end) const {
    // The place of a piece in each loop over blocks; found once, and then counted on.
    std::array<int64_t, DNNL_MAX_NDIMS> place{};
    int64_t from = 0, to = 0, block = begin / pieces_, piece = begin % pieces_;
    for (size_t i = nest_.outer.size(); i-- > 0;) {
      const Axis& axis = nest_.outer[i];
      place.at(i) = block % axis.extent;
      from += place.at(i) * axis.from;
      to += place.at(i) * axis.to;
      block /= axis.extent;
    }
    for (int64_t work = begin; work < end; ++work) {
      const int64_t column = piece * piece_;
      const char* source = src + (from + column) * item_bytes_.first;
      char* target = dst + (to + column * nest_.turn.to_row) * item_bytes_.second;
      const int64_t columns = std::min(piece_, nest_.columns - column);
      if (nest_.turn.rows == 0) {
        kernels_.flat(source, columns, scales, target);
      } else {
        Turn turn = nest_.turn;
        turn.columns = columns;
        kernels_.turned(source, turn, scales, target);
      }
      if (++piece < pieces_) continue;
      piece = 0;
      for (size_t i = nest_.outer.size(); i-- > 0;) {
        const Axis& axis = nest_.outer[i];
        from += axis.from;
        to += axis.to;
        if (++place.at(i) < axis.extent) break;
        place.at(i) = 0;
        from -= axis.extent * axis.from;
        to -= axis.extent * axis.to;
      }
    }
  }

  Nest nest_;
  Kernels kernels_;
  std::pair<int64_t, int64_t> item_bytes_;
  std::vector<Role> roles_;
  int64_t piece_ = 1, pieces_ = 1, works_ = 1;
  int threads_ = 1;
};

Kernels SelectKernels(Number src, Number dst) {
  return ForThisIsa(Avx512Kernels, Avx2Kernels, BaseKernels)(src, dst);
}

}  // namespace

bool Build(StepBuilder* b, const memory::desc& src, const memory::desc& dst) {
  const std::optional<Number> from = NumberOf(src), to = NumberOf(dst);
  if (!from || !to || !IsPlain(src) || !IsPlain(dst) || IsEmpty(src)) return false;
  Kernels kernels = SelectKernels(*from, *to);
  if (kernels.flat == nullptr && kernels.turned == nullptr) return false;
  std::vector<Axis> axes = AxesOf(src, dst);
  const bool alike = *from == Number::kFloat && *to == Number::kFloat;
  const int64_t together = alike ? TakeTogether(&axes, &kernels) : 1;
  std::optional<Nest> nest = NestOf(std::move(axes), kernels, together > 1 ? 1 : kFewestColumns);
  if (!nest) return false;
  if (together > 1) {
    // Few columns are parts of lines of which the next blocks have the rest; oneDNN does as well by
    // few rows.
    if (nest->columns > nest->turn.rows) return false;
    std::sort(nest->outer.begin(), nest->outer.end(),
              [](const Axis& a, const Axis& b) { return a.from > b.from; });
  }
  std::vector<MemoryArgument> arguments = {{0, Argument::Source::kValue, b->Id("src"), src},
                                           {0, Argument::Source::kValue, b->Id("dst"), dst}};
  std::vector<Role> roles;
  for (size_t role = 0; role < kRoles; ++role) {
    const char* name = kRoleNames[role];
    if (!b->Has(name)) continue;
    if (b->Get(name).dims != Dims{1}) return false;
    roles.push_back(static_cast<Role>(role));
    arguments.push_back({0, Argument::Source::kValue, b->Id(name), b->Desc(name)});
  }
  auto item = [&](const memory::desc& desc) {
    return together * static_cast<int64_t>(memory::data_type_size(desc.get_data_type()));
  };
  if (b->Refuses(kernels.name)) return false;
  b->AddStage(std::make_unique<ConversionStage>(*std::move(nest), kernels,
                                                std::make_pair(item(src), item(dst)),
                                                std::move(roles), arguments),
              kernels.name);
  return true;
}

}  // namespace mxplan::conversion
