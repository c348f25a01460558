// Attention on bfloat16 for AMX.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma,amx-tile,amx-bf16")
#define MXPLAN_LANES 16
#define MXPLAN_ROWS 8
#define MXPLAN_VALUES 2
#define MXPLAN_KEYS 24
#define MXPLAN_BF16_INSTRUCTIONS
#define MXPLAN_MASKS
#include "onednn/attention/kernels_impl.h"
#include "onednn/attention/short_kernels_impl.h"
// Behind what it works with.
#include "onednn/attention/tiles_impl.h"

namespace mxplan::attention {
namespace {

// Fewer keys and values are not worth packing.
constexpr int64_t kLeastKeys = 24;

void AmxRows(const ShortBlock& block, const ShortQuery* queries, int64_t count, float* memory) {
  if (block.keys >= kLeastKeys) return TileRows(block, queries, count, memory);
  for (int64_t first = 0; first < count; first += kMostRows) {
    AnyShortRows(block, queries + first, std::min(kMostRows, count - first), memory);
  }
}

int64_t AmxScratch(int64_t depth, int64_t width) {
  return std::max(TileFloats(depth, width), ShortScratchFloats(depth, width));
}

}  // namespace

ShortKernels AmxKernels() {
  ShortKernels kernels = GetShort("attention:avx512_amx");
  kernels.most_lanes = kMostGroups;
  kernels.least_packed = kLeastKeys;
  kernels.scratch = AmxScratch;
  kernels.rows = AmxRows;
  return kernels;
}

}  // namespace mxplan::attention
