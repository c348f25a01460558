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

}  // namespace

void PackConstant(Packing packing, const memory::desc& from, const char* src,
                  const memory::desc& to, char* dst) {
  if (packing == Packing::kReorder) return Reorder(from, src, to, dst);
  auto variant = packing == Packing::kWinogradF4 ? winograd::Variant::kF4 : winograd::Variant::kF2;
  memory::desc plain = MakeDesc(to.get_dims(), to.get_data_type(), PlainTag(3));
  Buffer matrices(static_cast<int64_t>(plain.get_size()));
  winograd::TransformWeights(variant, from, reinterpret_cast<const float*>(src), to.get_dims()[1],
                             to.get_dims()[2], reinterpret_cast<float*>(matrices.data()));
  Reorder(plain, matrices.data(), to, dst);
}

}  // namespace mxplan
