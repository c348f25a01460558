// One sample times a matrix whose rows are filters, as plain functions on pointers.
//
// Nothing is used twice but the sample, so the speed is that of reading the filters: several rows
// at once, as many streams as the processor's prefetchers follow, and hints far ahead of them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROW_PRODUCT_KERNELS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROW_PRODUCT_KERNELS_H_

#include <cstdint>

#include "onednn/numbers.h"
#include "onednn/post_ops/codes.h"

namespace mxplan {

constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kResultsAtOnce = 16;  // that post-ops are applied to

struct RowProduct {
  const void* filters = nullptr;  // [columns, depth], dense
  const float* bias = nullptr;    // [columns], or null
  int64_t depth = 0;
  Real filter = kRealFloat, src = kRealFloat, dst = kRealFloat;  // types of numbers
  const post_ops::PostOp* post_ops = nullptr;  // their operands have a number for each row
  int64_t post_op_count = 0;
};

// dst[i] = filters[i] . src + bias[i], and the post-ops of that, for i in [begin, end); all in
// float32 but for the numbers that are read and written.
using RowProductKernel = void (*)(const RowProduct& product, const void* src, int64_t begin,
                                  int64_t end, void* dst);

void RowProductAvx512(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                      void* dst);
void RowProductAvx2(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                    void* dst);
void RowProductBase(const RowProduct& product, const void* src, int64_t begin, int64_t end,
                    void* dst);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_ROW_PRODUCT_KERNELS_H_
