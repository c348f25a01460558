// Convolution by Winograd's minimal filtering: fewer multiplications than the direct sum.
//
//   src --input transform--> patches --36 matrix products with the filters--> --output transform-->
//   dst
//
// A convolution in groups is that many smaller ones on the same images; the chunks of one group
// come before those of the next.
// Tiles go through in chunks.  Where a chunk's patches fit the cache of a core, each thread takes
// whole chunks of its own; where the filters are the larger part, all threads work on one chunk and
// divide the filters among them.  Bias and post-ops are applied in the output transform.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_WINOGRAD_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_WINOGRAD_H_

#include "onednn/builder/step_builder.h"
#include "onednn/winograd/kernels/kernels.h"

namespace mxplan::winograd {

// Builds a convolution or deconvolution step with square tiles of `tile` pixels (2 or 4), or throws
// Unsupported: it has to be 2-D, 3x3 or, with tiles of 2, 5x5, of stride 1 and without dilation,
// not depthwise, on images with channels innermost (acdb, or aBcd8b and aBcd16b where groups fill
// blocks and blocks fill vectors).  Constant weights are transformed once, others in each call.
void Build(StepBuilder* b, int64_t tile);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_WINOGRAD_H_
