// Steps that write over some elements of a tensor: put, scatter.  Where the result stands in the
// place of the tensor, the other elements are there already.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "host/layout.h"
#include "host/move.h"
#include "host/parallel.h"
#include "host/steps/builders.h"
#include "host/steps/indices.h"
#include "host/steps/update.h"

namespace mxplan::host {
namespace {

// Entries of `bytes` at `count` places, of `entries`; a place has an index for each of some axes.
struct Scatter {
  Update update;
  Dims extents;  // of the axes that are indexed
  int64_t count, entries, bytes;
  bool wide;  // indices of int64

  void Run(const char* src, const char* indices, const char* updates, int64_t* places,
           char* dst) const {
    Resolve(indices, places);
    CopyWhole(src, dst, entries * bytes);
    if (count == 0) return;
    // Each thread has a range of the tensor, so that updates of one place keep their order.
    const double entry_ns = (2.0 + kByteNs * static_cast<double>(bytes)) *
                            static_cast<double>(count) / static_cast<double>(entries);
    ParallelFor(entries, entry_ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        if (places[i] < begin || places[i] >= end) continue;
        update(updates + i * bytes, dst + places[i] * bytes, bytes);
      }
    });
  }

 private:
  void Resolve(const char* indices, int64_t* places) const {
    const Indices given{indices, wide};
    int64_t at = 0;
    for (int64_t i = 0; i < count; ++i) {
      places[i] = 0;
      for (size_t axis = 0; axis < extents.size(); ++axis, ++at) {
        const int64_t place = PlaceOf(given.At(at), extents[axis], static_cast<int64_t>(axis));
        places[i] = places[i] * extents[axis] + place;
      }
    }
  }
};

}  // namespace

void BuildPut(StepBuilder* b) {
  const ResolvedValue &part = b->Get("part"), &dst = b->Get("dst");
  if (b->Get("src").tag != dst.tag) {
    ThrowUnsupported("src: layout ", b->Get("src").tag, ", expected ", dst.tag, ", as dst has it");
  }
  for (const char* role : {"src", "part"}) {
    if (b->Dtype(role) != b->Dtype("dst")) {
      ThrowUnsupported(role, ": element type ", b->Dtype(role), ", expected ", b->Dtype("dst"));
    }
  }
  const Dims& begin = IntegersOf(b->step(), "begin");
  const Dims& steps = IntegersOf(b->step(), "steps");
  std::vector<Places> axes(dst.dims.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t count = part.dims[i];
    axes[i] = {count, LineAlong(dst.layout, i, count, begin[i], steps[i]),
               LineAlong(part.layout, i, count)};
  }
  auto move = std::make_shared<const Move>(std::move(axes), b->ElementBytes("dst"));
  const int64_t bytes = dst.Bytes();
  b->Add({"dst", "src", "part"}, [move, bytes](char* const* at) {
    CopyWhole(at[1], at[0], bytes);
    move->Run(at[2], at[0]);
  });
}

void BuildScatter(StepBuilder* b) {
  for (const char* role : {"src", "indices", "updates", "dst"}) {
    const ResolvedValue& value = b->Get(role);
    if (value.tag != PlainTag(value.dims.size())) {
      ThrowUnsupported(role, ": layout ", value.tag, ", expected the plain one");
    }
  }
  const Dims &src = b->Get("src").dims, &indices = b->Get("indices").dims;
  const auto depth = static_cast<size_t>(indices.back());
  Scatter scatter;
  scatter.update = UpdateOf(*b);
  scatter.extents.assign(src.begin(), src.begin() + indices.back());
  scatter.entries = ElementsOf(src, 0, depth);
  scatter.bytes = ElementsOf(src, depth, src.size()) * b->ElementBytes("src");
  scatter.wide = b->ElementBytes("indices") == 8;
  scatter.count = ElementsOf(indices, 0, indices.size() - 1);
  b->NeedScratchpad(scatter.count * static_cast<int64_t>(sizeof(int64_t)));
  b->Add({"dst", "src", "indices", "updates"}, [scatter](char* const* at) {
    scatter.Run(at[1], at[2], at[3], reinterpret_cast<int64_t*>(at[4]), at[0]);
  });
}

}  // namespace mxplan::host
