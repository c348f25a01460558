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

// Fewer rows are not worth packing keys and values for.
constexpr int64_t kLeastRows = 12;

void AmxRows(const ShortBlock& block, const ShortQuery* queries, int64_t count, float* memory) {
  if (count < kLeastRows) return AnyShortRows(block, queries, count, memory);
  TileRows(block, queries, count, memory);
}

int64_t AmxScratch(int64_t depth, int64_t width) {
  return std::max(TileFloats(depth, width), ShortScratchFloats(depth, width));
}

}  // namespace

ShortKernels AmxKernels() {
  ShortKernels kernels = GetShort("attention:avx512_amx");
  kernels.most_lanes = kMostGroups;
  kernels.packs = true;
  kernels.scratch = AmxScratch;
  kernels.rows = AmxRows;
  return kernels;
}

}  // namespace mxplan::attention
