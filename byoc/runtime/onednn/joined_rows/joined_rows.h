// Concatenation of short rows: channels last, where each pixel of dst is a few bytes of each piece.
//
//   dst   a a a b b c c c | a a a b b c c c | ...      one row for each pixel
//
// oneDNN's own concatenation starts anew for each such piece of a row.  Bytes move, whatever their
// type.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_JOINED_ROWS_JOINED_ROWS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_JOINED_ROWS_JOINED_ROWS_H_

#include <cstdint>
#include <vector>

#include "onednn/builder/step_builder.h"

namespace mxplan::joined_rows {

constexpr const char* kName = "joined_rows";

// Adds the stage that writes `pieces`, by their values, along `axis` of dst; false, and nothing
// done, where tensors have other layouts, rows are long, or the step does more than to move.
bool Build(StepBuilder* b, int64_t axis, const std::vector<int>& pieces);

}  // namespace mxplan::joined_rows

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_JOINED_ROWS_JOINED_ROWS_H_
