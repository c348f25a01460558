// Images as they stand in a layout.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_IMAGES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_IMAGES_H_

#include <string>

#include "base/error.h"
#include "host/layout.h"
#include "program/resolved.h"

namespace mxplan::host {

// Images of one tensor: `planes` of rows, each of `extents.back()` points of `inner` elements that
// stand together.
struct Images {
  Dims extents;        // spatial
  int64_t planes = 1;  // of one sample
  int64_t samples = 1;
  int64_t inner = 1;
  int64_t sample_stride = 0, plane_stride = 0;
  Dims strides;  // spatial
};

inline Images ImagesOf(const ResolvedValue& value) {
  const PhysicalLayout& layout = value.layout;
  const size_t rank = value.dims.size();
  const int64_t channels = value.dims[1];
  Images images;
  images.samples = value.dims[0];
  images.extents.assign(value.dims.begin() + 2, value.dims.end());
  images.sample_stride = layout.strides[0];
  images.strides.assign(layout.strides.begin() + 2, layout.strides.end());
  const int64_t step = images.strides.back();
  const std::string plain = PlainTag(rank);
  if (value.tag == plain) {
    images.planes = channels;
    images.plane_stride = layout.strides[1];
  } else if (layout.blocks.empty() && layout.strides[1] == 1 && step == channels) {
    images.inner = channels;
  } else if (layout.blocks.size() == 1 && layout.block_axes[0] == 1 && step == layout.blocks[0]) {
    images.inner = layout.blocks[0];
    images.planes = layout.padded[1] / layout.blocks[0];
    images.plane_stride = layout.strides[1];
  } else {
    ThrowUnsupported("layout ", value.tag, ": expected plain, channels last or channels in blocks");
  }
  return images;
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_IMAGES_H_
