// Steps that pick or write single elements by an index each: gather_elements, scatter_elements.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "host/layout.h"
#include "host/parallel.h"
#include "host/steps/builders.h"
#include "host/steps/indices.h"
#include "host/steps/update.h"

namespace mxplan::host {
namespace {

constexpr double kPickedNs = 2.0;

// Elements of a tensor that are named by an index along one axis, by their own place along others.
struct Indexed {
  Dims dims;         // of the indices
  Dims strides;      // of the data, in elements; 0 along the axis
  int64_t rows = 1;  // of indices: all axes but the last
  int64_t columns = 1;
  int64_t extent = 0;  // of the data's axis
  int64_t along = 0;   // the stride of that axis
  int64_t axis = 0;
  bool wide = false;  // indices of int64

  void Check(const char* indices) const {
    const Indices given{indices, wide};
    for (int64_t at = 0; at < rows * columns; ++at) PlaceOf(given.At(at), extent, axis);
  }

  // Calls visit(number of the index, place in the data) for some rows and columns, in order.
  template <typename Visit>
  void Walk(const char* indices, int64_t first_row, int64_t end_row, int64_t first, int64_t end,
            const Visit& visit) const {
    const Indices given{indices, wide};
    for (int64_t row = first_row; row < end_row; ++row) {
      int64_t base = 0, rest = row;
      for (size_t i = dims.size() - 1; i-- > 0;) {
        base += rest % dims[i] * strides[i];
        rest /= dims[i];
      }
      for (int64_t column = first; column < end; ++column) {
        const int64_t at = row * columns + column;
        const int64_t index = given.At(at), place = index < 0 ? index + extent : index;
        visit(at, base + column * strides.back() + place * along);
      }
    }
  }
};

Indexed IndexedBy(const StepBuilder& b) {
  for (const Operand& operand : b.step().operands) {
    const ResolvedValue& value = b.Get(operand.value);
    if (value.tag != PlainTag(value.dims.size())) {
      ThrowUnsupported(operand.role, ": layout ", value.tag, ", expected the plain one");
    }
  }
  Indexed indexed;
  const Dims& data = b.Get("src").dims;
  indexed.dims = b.Get("indices").dims;
  indexed.axis = IntegerOf(b.step(), "axis");
  indexed.wide = b.ElementBytes("indices") == 8;
  indexed.strides.resize(data.size());
  int64_t stride = 1;
  for (size_t i = data.size(); i-- > 0;) {
    indexed.strides[i] = stride;
    stride *= data[i];
  }
  const auto axis = static_cast<size_t>(indexed.axis);
  indexed.extent = data[axis];
  indexed.along = std::exchange(indexed.strides[axis], 0);
  indexed.columns = indexed.dims.back();
  for (size_t i = 0; i + 1 < indexed.dims.size(); ++i) indexed.rows *= indexed.dims[i];
  return indexed;
}

template <typename T>
void PickElements(const Indexed& indexed, const char* src, const char* indices, char* dst) {
  indexed.Check(indices);
  const auto* from = reinterpret_cast<const T*>(src);
  auto* to = reinterpret_cast<T*>(dst);
  ParallelFor(indexed.rows, kPickedNs * static_cast<double>(indexed.columns),
              [&](int64_t begin, int64_t end) {
                indexed.Walk(indices, begin, end, 0, indexed.columns,
                             [&](int64_t at, int64_t place) { to[at] = from[place]; });
              });
}

using Picking = void (*)(const Indexed& indexed, const char* src, const char* indices, char* dst);

Picking PickingOf(int64_t bytes) {
  if (bytes == 1) return PickElements<uint8_t>;
  if (bytes == 2) return PickElements<uint16_t>;
  return bytes == 4 ? PickElements<uint32_t> : PickElements<uint64_t>;
}

}  // namespace

void BuildGatherElements(StepBuilder* b) {
  const Indexed indexed = IndexedBy(*b);
  const Picking gather = PickingOf(b->ElementBytes("dst"));
  b->Add({"dst", "src", "indices"},
         [indexed, gather](char* const* at) { gather(indexed, at[1], at[2], at[0]); });
}

void BuildScatterElements(StepBuilder* b) {
  const Indexed indexed = IndexedBy(*b);
  const Update update = UpdateOf(*b);
  const int64_t bytes = b->Get("dst").Bytes(), element = b->ElementBytes("dst");
  const bool last = indexed.axis + 1 == static_cast<int64_t>(indexed.dims.size());
  b->Add({"dst", "src", "indices", "updates"}, [=](char* const* at) {
    indexed.Check(at[2]);
    CopyWhole(at[1], at[0], bytes);
    auto write = [&](int64_t first_row, int64_t end_row, int64_t first, int64_t end) {
      indexed.Walk(at[2], first_row, end_row, first, end, [&](int64_t number, int64_t place) {
        update(at[3] + number * element, at[0] + place * element, element);
      });
    };
    // Threads share what cannot meet: rows, or where rows can, columns.
    if (last) {
      ParallelFor(indexed.rows, kPickedNs * static_cast<double>(indexed.columns),
                  [&](int64_t begin, int64_t end) { write(begin, end, 0, indexed.columns); });
    } else {
      ParallelFor(indexed.columns, kPickedNs * static_cast<double>(indexed.rows),
                  [&](int64_t begin, int64_t end) { write(0, indexed.rows, begin, end); });
    }
  });
}

}  // namespace mxplan::host
