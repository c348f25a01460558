// Cuts the tiles of a Winograd convolution into chunks, for each group of channels alike.
// Plain data in, plain data out.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_CHUNKS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_CHUNKS_H_

#include <cstdint>

namespace mxplan::winograd {

struct Chunks {
  int64_t tiles = 0;    // of each, the last one possibly less
  int64_t count = 0;    // in a group
  bool shared = false;  // all threads on one chunk; else each thread on its own
};

// `tile_bytes` are those of one tile's patches before and after the matrix products, `filter_bytes`
// those of all filters, both of one group.
Chunks PlanChunks(int64_t groups, int64_t tiles, int64_t tile_bytes, int64_t filter_bytes,
                  int threads);

}  // namespace mxplan::winograd

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_WINOGRAD_CHUNKS_H_
