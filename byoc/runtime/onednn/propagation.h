// The kinds of propagation that primitives are made for; no other file names oneDNN's.
//
//   kInference  results alone
//   kTraining   the same, with what gradients are made of: statistics, workspaces
//   kBackward   gradients, of data and of weights where a primitive gives both
//
// Primitives that know no such kinds (products, concatenations) are described without one.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROPAGATION_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROPAGATION_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <type_traits>

#include "onednn/engine.h"

namespace mxplan {

using Propagation = dnnl::prop_kind;
constexpr Propagation kInference = Propagation::forward_inference;
constexpr Propagation kTraining = Propagation::forward_training;
constexpr Propagation kBackward = Propagation::backward;

// Whether the descriptor of a primitive takes a kind in front of `Described`, engine and attributes
// left out.
template <typename Primitive, typename... Described>
constexpr bool kTakesPropagation =
    std::is_constructible_v<typename Primitive::primitive_desc, const dnnl::engine&, Propagation,
                            const Described&...>;

// The descriptor of a primitive for a kind of propagation, by what stands behind that.
template <typename Primitive, typename... Described>
typename Primitive::primitive_desc DescribePrimitive(Propagation propagation,
                                                     const Described&... described) {
  if constexpr (kTakesPropagation<Primitive, Described...>) {
    return typename Primitive::primitive_desc(CpuEngine(), propagation, described...);
  } else {
    return typename Primitive::primitive_desc(CpuEngine(), described...);
  }
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PROPAGATION_H_
