// Packed forms of constants; see packing.h.
#include "packing.h"

#include "buffer.h"
#include "engine.h"
#include "layout.h"
#include "winograd_weights.h"

namespace mxplan {
namespace {

using dnnl::memory;

void Reorder(const memory::desc& from, const char* src, const memory::desc& to, char* dst) {
  memory source(from, CpuEngine(), const_cast<char*>(src));  // oneDNN has no const memory
  memory target(to, CpuEngine(), dst);
  dnnl::reorder(source, target).execute(ThreadStream(), source, target);
  ThreadStream().wait();
}

void Reread(const Packing& packing, const memory::desc& from, const char* src,
            const memory::desc& to, char* dst) {
  if (SamePlacement(from, packing.through)) return Reorder(packing.seen, src, to, dst);
  Buffer between(static_cast<int64_t>(packing.through.get_size()));
  Reorder(from, src, packing.through, between.data());
  Reorder(packing.seen, between.data(), to, dst);
}

void TransformFilters(winograd::Variant variant, const memory::desc& from, const char* src,
                      const memory::desc& to, char* dst) {
  memory::desc plain = MakeDesc(to.get_dims(), to.get_data_type(), PlainTag(3));
  Buffer matrices(static_cast<int64_t>(plain.get_size()));
  winograd::TransformWeights(variant, from, reinterpret_cast<const float*>(src), to.get_dims()[1],
                             to.get_dims()[2], reinterpret_cast<float*>(matrices.data()));
  Reorder(plain, matrices.data(), to, dst);
}

}  // namespace

void PackConstant(const Packing& packing, const memory::desc& from, const char* src,
                  const memory::desc& to, char* dst) {
  switch (packing.kind) {
    case Packing::Kind::kReorder:
      return Reorder(from, src, to, dst);
    case Packing::Kind::kReread:
      return Reread(packing, from, src, to, dst);
    case Packing::Kind::kWinogradF2:
      return TransformFilters(winograd::Variant::kF2, from, src, to, dst);
    case Packing::Kind::kWinogradF4:
      return TransformFilters(winograd::Variant::kF4, from, src, to, dst);
  }
}

}  // namespace mxplan
