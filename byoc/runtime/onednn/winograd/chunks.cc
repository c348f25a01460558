// Chunks of tiles; see onednn/winograd/chunks.h.
//
// The numbers were measured on a core with 1 MiB of second-level cache
// (scripts/bench convolutions); times change by a few percent within a factor of two of each.
#include "onednn/winograd/chunks.h"

#include <algorithm>

namespace mxplan::winograd {
namespace {

constexpr int64_t kChunkBytes = 768 << 10;   // patches that stay in the cache of a core
constexpr int64_t kLeastTiles = 24;          // rows that matrix products want before that
constexpr int64_t kSharedFilters = 4 << 20;  // filters that no thread should read alone
constexpr int64_t kSharedTiles = 64;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Chunks PlanChunks(int64_t groups, int64_t tiles, int64_t tile_bytes, int64_t filter_bytes,
                  int threads) {
  Chunks chunks;
  const bool large = filter_bytes > kSharedFilters;
  chunks.shared = large && groups < threads;  // else each thread has groups of its own
  const int64_t teams = chunks.shared ? 1 : threads;
  int64_t most = large ? kSharedTiles : std::max(kLeastTiles, kChunkBytes / tile_bytes);
  most = std::min(most, DivideUp(tiles, DivideUp(teams, groups))) | 1;
  // The size that leaves the least to do for the busiest team, the larger of equals.  Sizes are
  // odd: a patch has one vector in each matrix, and these should not all fall into the same few
  // cache sets.
  int64_t least = INT64_MAX;
  for (int64_t size = most; size > most / 2; size -= 2) {
    int64_t work = DivideUp(groups * DivideUp(tiles, size), teams) * size;
    if (work >= least) continue;
    least = work;
    chunks.tiles = size;
  }
  chunks.count = DivideUp(tiles, chunks.tiles);
  return chunks;
}

}  // namespace mxplan::winograd
