// Attention's kernels for bfloat16 over vectors that any processor with AVX2 has, as a function for
// tests; pairs are multiplied without the instructions for them.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#define MXPLAN_ROWS 4
#define MXPLAN_VALUES 2
#define MXPLAN_KEYS 12
#include "onednn/attention/kernels_impl.h"
#include "onednn/attention/short_kernels_impl.h"

using namespace mxplan::attention;

struct Sizes {
  int64_t rows, keys, depth, width, mask_row, mask_key;  // strides of the mask, which may be 0
  int64_t before;  // keys that the first row sees, beside itself; below 0: all rows see all
  int64_t nan_is_zero, few;
};

extern "C" int64_t most_rows() { return kMostRows; }

extern "C" void attend(const Sizes* s, float scale, Short* query, Short* key, Short* value,
                       float* mask, Short* dst) {
  ShortKernels kernels = GetShort("portable");
  ShortBlock block;
  block.keys = s->keys;
  block.depth = s->depth;
  block.width = s->width;
  block.scale = scale;
  block.masked = mask != nullptr;
  block.one_mask = s->mask_row == 0;
  block.mask_stride = s->mask_key;
  block.dead_rows_are_zero = s->nan_is_zero != 0;
  block.key = {key, s->depth};
  block.value = {value, s->width};
  std::vector<ShortQuery> queries(static_cast<size_t>(s->rows));
  for (int64_t i = 0; i < s->rows; ++i) {
    ShortQuery& one = queries[static_cast<size_t>(i)];
    one.data = query + i * s->depth;
    one.dst = dst + i * s->width;
    if (mask != nullptr) one.mask = mask + i * s->mask_row;
    one.visible = s->before < 0 ? s->keys : std::min(s->keys, s->before + i + 1);
  }
  // Results must not depend on what the scratch held before the call.
  std::vector<float> scratch(static_cast<size_t>(kernels.scratch(s->depth, s->width)),
                             std::numeric_limits<float>::quiet_NaN());
  (s->few != 0 ? kernels.few : kernels.rows)(block, queries.data(), s->rows, scratch.data());
}
