// The kernels of squeeze_excite/kernels.h for vectors of MXPLAN_LANES floats; included once for
// each instruction set.  Everything but `Get` is in an unnamed namespace.
#include "onednn/squeeze_excite/kernels.h"
#include "onednn/squeeze_excite/means_impl.h"
#include "onednn/squeeze_excite/pixels_impl.h"
#include "onednn/squeeze_excite/products_impl.h"

namespace mxplan::squeeze_excite {
namespace {

Kernels Get(const char* name) {
  return {name,
          {Means<float>, Means<Short>},
          {Scale<float>, Scale<Short>},
          {ByRows<float>, ByRows<Short>},
          {ByColumns<float>, ByColumns<Short>}};
}

}  // namespace
}  // namespace mxplan::squeeze_excite
