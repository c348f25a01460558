// Convolution by Winograd's minimal filtering: fewer multiplications than the direct sum.
//
//   src --input transform--> patches --36 matrix products with the filters--> --output transform-->
//   dst
//
// Tiles go through in chunks.  Where a chunk's patches fit the cache of a core, each thread takes
// whole chunks of its own; where the filters are the larger part, all threads work on one chunk and
// divide the filters among them.  Bias and post-ops are applied in the output transform.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WINOGRAD_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WINOGRAD_H_

#include "executable.h"
#include "winograd_kernels.h"

namespace mxplan::winograd {

// Builds a convolution step, or throws Unsupported: it has to be 2-D, 3x3, of stride 1, dense, with
// one group and constant weights, on images with channels innermost (acdb or aBcd16b).
void Build(StepBuilder* b, Variant variant);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WINOGRAD_H_
