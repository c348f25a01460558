// The loops of host/kernels/kernels.h; included once for each instruction set, by a file that names
// it.
//
// Everything here and in the parts has internal linkage, and headers come before the instruction
// set is named: no inline function of one set may end up in code of another.
#include "host/kernels/common_impl.h"
#include "host/kernels/cumulative_impl.h"
#include "host/kernels/images/interpolation_impl.h"
#include "host/kernels/images/sampling_impl.h"
#include "host/kernels/moves_impl.h"
#include "host/kernels/order_impl.h"
#include "host/kernels/pairs_impl.h"
#include "host/kernels/reduce_impl.h"
#include "host/kernels/unary_impl.h"

namespace mxplan::host {
namespace {

Kernels Get() {
  return {MXPLAN_ISA,           UnaryKernel,
          BinaryKernel,         CompareKernel,
          SelectKernel,         CopyKernel,
          CastKernel,           TakeKernel,
          TakeEntriesKernel,    ReduceRowsKernel,
          ReduceColumnsKernel,  WeightedSumKernel,
          SumPointsKernel,      InterpolateKernel,
          FindTogetherKernel,   SamplePointsKernel,
          FarthestRowsKernel,   FarthestColumnsKernel,
          SortKeysKernel,       KeysBelowKernel,
          CumulativeRowsKernel, CumulativeColumnsKernel};
}

}  // namespace
}  // namespace mxplan::host
