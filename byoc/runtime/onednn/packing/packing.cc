// Packed forms of constants; see packing.h.
#include "onednn/packing/packing.h"

#include "memory/buffer.h"
#include "onednn/layout.h"
#include "onednn/packing/mapped_reorder.h"
#include "onednn/winograd/weights.h"
#include "weights/constant.h"

namespace mxplan {
namespace {

using dnnl::memory;

void Reread(const Packing& packing, const memory::desc& from, const char* src,
            const memory::desc& to, char* dst, PackingScratch* scratch) {
  if (SamePlacement(from, packing.through)) return Reorder(packing.seen, src, false, to, dst);
  char* between = scratch->Get(static_cast<int64_t>(packing.through.get_size()));
  Reorder(from, src, false, packing.through, between);
  Reorder(packing.seen, between, false, to, dst);
}

void TransformFilters(const Packing& packing, const memory::desc& from, const char* src,
                      const memory::desc& to, char* dst, PackingScratch* scratch) {
  memory::desc plain = MakeDesc(to.get_dims(), to.get_data_type(), PlainTag(3));
  memory::desc real = from;
  char* matrices = nullptr;
  if (from.get_data_type() == to.get_data_type()) {
    matrices = scratch->Get(static_cast<int64_t>(plain.get_size()));
  } else {  // filters in a shorter type, converted behind the matrices
    real = MakeDesc(from.get_dims(), to.get_data_type(), PlainTag(from.get_dims().size()));
    const auto own = AlignUp(static_cast<int64_t>(plain.get_size()));
    matrices = scratch->Get(own + static_cast<int64_t>(real.get_size()));
    Reorder(from, src, false, real, matrices + own);
    src = matrices + own;
  }
  winograd::TransformWeights(packing.variant, packing.group, packing.turned, real,
                             reinterpret_cast<const float*>(src), to.get_dims()[1],
                             to.get_dims()[2], reinterpret_cast<float*>(matrices));
  Reorder(plain, matrices, false, to, dst);
}

}  // namespace

void PackConstant(const Packing& packing, const memory::desc& from, const char* src, bool mapped,
                  const memory::desc& to, char* dst, PackingScratch* scratch) {
  switch (packing.kind) {
    case Packing::Kind::kReorder:
      return Reorder(from, src, mapped, to, dst);
    case Packing::Kind::kReread:
      Reread(packing, from, src, to, dst, scratch);
      break;
    case Packing::Kind::kWinograd:
      TransformFilters(packing, from, src, to, dst, scratch);
      break;
  }
  if (mapped) DropPages(src, static_cast<int64_t>(from.get_size()));
}

}  // namespace mxplan
