// Steps that move elements of any type: reorder, strided_slice, concat, gather,
// gather_nd, gather_places.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "host/layout.h"
#include "host/move.h"
#include "host/steps/builders.h"
#include "host/steps/indices.h"

namespace mxplan::host {
namespace {

// Adds a move from src into dst; padding of dst is zeroed.
void AddMove(StepBuilder* b, std::vector<Places> axes) {
  if (b->Dtype("src") != b->Dtype("dst")) {
    ThrowUnsupported("src: expected element type ", b->Dtype("dst"), ", as dst has it, got ",
                     b->Dtype("src"));
  }
  auto move = std::make_shared<const Move>(std::move(axes), b->ElementBytes("dst"));
  const auto clear = static_cast<size_t>(b->HasPadding("dst") ? b->Get("dst").Bytes() : 0);
  b->Add({"dst", "src"}, [move, clear](char* const* at) {
    if (clear > 0) std::memset(at[0], 0, clear);
    move->Run(at[1], at[0]);
  });
}

// Adds to places, each times the extent, those of every `apart`-th index, and tells whether all are
// inside.
template <typename Index>
bool Resolve(const Index* given, int64_t apart, int64_t count, int64_t extent, int64_t* places) {
  bool inside = true;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = given[i * apart], place = index < 0 ? index + extent : index;
    inside &= place >= 0 && place < extent;
    places[i] = places[i] * extent + place;
  }
  return inside;
}

bool Resolve(const Indices& given, int64_t first, int64_t apart, int64_t count, int64_t extent,
             int64_t* places) {
  if (given.wide) {
    const auto* at = reinterpret_cast<const int64_t*>(given.data) + first;
    return Resolve(at, apart, count, extent, places);
  }
  const auto* at = reinterpret_cast<const int32_t*>(given.data) + first;
  return Resolve(at, apart, count, extent, places);
}

bool IsPlain(const ResolvedValue& value) { return value.tag == PlainTag(value.dims.size()); }

constexpr double kGatheredNs = 0.4;

// A gather along one axis: `rows` times the entries at `count` indices, each of `bytes`.
struct Gather {
  int64_t rows, count, extent, bytes, axis;
  bool wide;  // indices of int64

  void Run(const char* src, const char* indices, int64_t* places, char* dst) const {
    std::fill_n(places, count, int64_t{0});
    if (!Resolve({indices, wide}, 0, 1, count, extent, places)) ThrowOutside({indices, wide});
    if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) return Elements(src, places, dst);
    const double entry_ns = 2.0 + 0.05 * static_cast<double>(bytes);
    if (rows < count) {
      return ParallelFor(
          count, entry_ns * static_cast<double>(rows), [&](int64_t begin, int64_t end) {
            for (int64_t row = 0; row < rows; ++row) {
              KernelsHere().take_entries(bytes, src + row * extent * bytes, 0, places + begin,
                                         dst + (row * count + begin) * bytes, {1, end - begin});
            }
          });
    }
    ParallelFor(rows, entry_ns * static_cast<double>(count), [&](int64_t begin, int64_t end) {
      KernelsHere().take_entries(bytes, src + begin * extent * bytes, extent * bytes, places,
                                 dst + begin * count * bytes, {end - begin, count});
    });
  }

 private:
  // Threads share rows, or the elements of each where rows are few.
  void Elements(const char* src, const int64_t* places, char* dst) const {
    auto take = [&](int64_t row, int64_t of_rows, int64_t first, int64_t some) {
      KernelsHere().take(bytes, {src + row * extent * bytes, 1, extent}, places + first,
                         {dst + (row * count + first) * bytes, count}, {of_rows, some});
    };
    if (rows < count) {
      return ParallelFor(count, kGatheredNs * static_cast<double>(rows),
                         [&](int64_t begin, int64_t end) { take(0, rows, begin, end - begin); });
    }
    ParallelFor(rows, kGatheredNs * static_cast<double>(count),
                [&](int64_t begin, int64_t end) { take(begin, end - begin, 0, count); });
  }

  void ThrowOutside(const Indices& given) const {
    for (int64_t i = 0; i < count; ++i) PlaceOf(given.At(i), extent, axis);
  }
};

// Entries of `bytes` at `count` places of each sample, whose indices are one for each of some axes.
struct GatherNd {
  Dims extents;  // of the axes that are indexed
  int64_t samples, count, bytes, first_axis;
  bool wide;  // indices of int64

  void Run(const char* src, const char* indices, int64_t* places, char* dst) const {
    const Indices given{indices, wide};
    const auto depth = static_cast<int64_t>(extents.size());
    for (int64_t sample = 0; sample < samples; ++sample) {
      std::fill_n(places + sample * count, count, sample);
    }
    bool inside = true;
    for (int64_t axis = 0; axis < depth; ++axis) {
      inside &=
          Resolve(given, axis, depth, samples * count, extents[static_cast<size_t>(axis)], places);
    }
    if (!inside) ThrowOutside(given);
    const bool one = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    const double entry_ns = one ? kGatheredNs : 2.0 + 0.05 * static_cast<double>(bytes);
    ParallelFor(samples * count, entry_ns, [&](int64_t begin, int64_t end) {
      char* to = dst + begin * bytes;
      if (one) {
        return KernelsHere().take(bytes, {src, 1, 0}, places + begin, {to, 0}, {1, end - begin});
      }
      KernelsHere().take_entries(bytes, src, 0, places + begin, to, {1, end - begin});
    });
  }

 private:
  void ThrowOutside(const Indices& given) const {
    const auto depth = static_cast<int64_t>(extents.size());
    for (int64_t i = 0; i < samples * count * depth; ++i) {
      PlaceOf(given.At(i), extents[static_cast<size_t>(i % depth)], first_axis + i % depth);
    }
  }
};

}  // namespace

void BuildReorder(StepBuilder* b) {
  const ResolvedValue &src = b->Get("src"), &dst = b->Get("dst");
  std::vector<Places> axes(dst.dims.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t count = dst.dims[i];
    axes[i] = {count, LineAlong(dst.layout, i, count), LineAlong(src.layout, i, count)};
  }
  AddMove(b, std::move(axes));
}

void BuildStridedSlice(StepBuilder* b) {
  const ResolvedValue &src = b->Get("src"), &dst = b->Get("dst");
  const Dims& begin = IntegersOf(b->step(), "begin");
  const Dims& steps = IntegersOf(b->step(), "steps");
  std::vector<Places> axes(dst.dims.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t count = dst.dims[i];
    axes[i] = {count, LineAlong(dst.layout, i, count),
               LineAlong(src.layout, i, count, begin[i], steps[i])};
  }
  AddMove(b, std::move(axes));
}

void BuildGatherPlaces(StepBuilder* b) {
  const ResolvedValue &src = b->Get("src"), &dst = b->Get("dst");
  const Dims &read = IntegersOf(b->step(), "axes"), &places = IntegersOf(b->step(), "places");
  std::vector<Places> axes(dst.dims.size());
  const int64_t* at = places.data();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t count = dst.dims[i];
    const bool reads = std::find(read.begin(), read.end(), static_cast<int64_t>(i)) != read.end();
    axes[i] = {count, LineAlong(dst.layout, i, count),
               reads ? LineAt(src.layout, i, at, count) : LineAlong(src.layout, i, count)};
    if (reads) at += count;
  }
  AddMove(b, std::move(axes));
}

void BuildConcat(StepBuilder* b) {
  const auto axis = static_cast<size_t>(IntegerOf(b->step(), "axis"));
  const ResolvedValue& dst = b->Get("dst");
  const auto clear = static_cast<size_t>(b->HasPadding("dst") ? dst.Bytes() : 0);
  if (clear > 0) b->Add({"dst"}, [clear](char* const* at) { std::memset(at[0], 0, clear); });
  int64_t begin = 0;
  for (const Operand& operand : b->step().operands) {
    if (operand.role != "src") continue;
    const ResolvedValue& src = b->Get(operand.value);
    std::vector<Places> axes(dst.dims.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t count = src.dims[i], first = i == axis ? begin : 0;
      axes[i] = {count, LineAlong(dst.layout, i, count, first), LineAlong(src.layout, i, count)};
    }
    begin += src.dims[axis];
    auto move = std::make_shared<const Move>(std::move(axes), b->ElementBytes("dst"));
    b->AddFor({b->Id("dst"), operand.value}, [move](char* const* at) { move->Run(at[1], at[0]); });
  }
}

void BuildGather(StepBuilder* b) {
  for (const char* role : {"src", "indices", "dst"}) {
    if (!IsPlain(b->Get(role))) {
      ThrowUnsupported(role, ": layout ", b->Get(role).tag, ", expected the plain one");
    }
  }
  const Dims &src = b->Get("src").dims, &indices = b->Get("indices").dims;
  const int64_t axis = IntegerOf(b->step(), "axis");
  const auto at = static_cast<size_t>(axis);
  Gather gather;
  gather.rows = ElementsOf(src, 0, at);
  gather.count = ElementsOf(indices, 0, indices.size());
  gather.extent = src[at];
  gather.bytes = ElementsOf(src, at + 1, src.size()) * b->ElementBytes("src");
  gather.axis = axis;
  gather.wide = b->ElementBytes("indices") == 8;
  if (gather.count == 0) gather.rows = 0;
  b->NeedScratchpad(gather.count * static_cast<int64_t>(sizeof(int64_t)));
  b->Add({"dst", "src", "indices"}, [gather](char* const* at) {
    gather.Run(at[1], at[2], reinterpret_cast<int64_t*>(at[3]), at[0]);
  });
}

void BuildGatherNd(StepBuilder* b) {
  for (const char* role : {"src", "indices", "dst"}) {
    if (!IsPlain(b->Get(role))) {
      ThrowUnsupported(role, ": layout ", b->Get(role).tag, ", expected the plain one");
    }
  }
  const Dims &src = b->Get("src").dims, &indices = b->Get("indices").dims;
  const auto batch = static_cast<size_t>(IntegerOf(b->step(), "batch_axes"));
  const size_t rest = batch + static_cast<size_t>(indices.back());
  GatherNd gather;
  gather.extents.assign(src.begin() + static_cast<std::ptrdiff_t>(batch),
                        src.begin() + static_cast<std::ptrdiff_t>(rest));
  gather.samples = ElementsOf(src, 0, batch);
  gather.count = ElementsOf(indices, batch, indices.size() - 1);
  gather.bytes = ElementsOf(src, rest, src.size()) * b->ElementBytes("src");
  gather.first_axis = static_cast<int64_t>(batch);
  gather.wide = b->ElementBytes("indices") == 8;
  b->NeedScratchpad(gather.samples * gather.count * static_cast<int64_t>(sizeof(int64_t)));
  b->Add({"dst", "src", "indices"}, [gather](char* const* at) {
    gather.Run(at[1], at[2], reinterpret_cast<int64_t*>(at[3]), at[0]);
  });
}

}  // namespace mxplan::host
