// The parts that threads compute of a convolution with few output channels.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_PARTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_PARTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "onednn/few_outputs/kernels.h"

namespace mxplan::few_outputs {

// Equal parts of dst, but for the last of each axis.
struct Parts {
  int64_t images = 1;
  std::array<int64_t, kAxes> size = {1, 1, 1}, count = {1, 1, 1};

  int64_t all() const { return images * count[kPlane] * count[kRow] * count[kColumn]; }
};

// Parts whose sums stay in cache, enough of them for the threads.
Parts PartsOf(const Convolution& c, int64_t images, int64_t threads);

// The tables of a convolution (kernels.h), which points to them.
struct Tables {
  std::vector<Tap> taps;
  std::vector<int64_t> ends, sums;

  // Of a convolution that has its parts' rows and pitch; sets what its tiles read.
  explicit Tables(Convolution* c);
  void PutInto(Convolution* c) const;
};

}  // namespace mxplan::few_outputs

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_FEW_OUTPUTS_PARTS_H_
