// Physical layouts: a tag such as "acdb" or "aBcd16b" to oneDNN's memory descriptor and back.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_LAYOUT_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_LAYOUT_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "onednn/numbers.h"
#include "program/physical_layout.h"

namespace mxplan {

// oneDNN's type for a dtype as TVM writes it; throws Unsupported on others.
dnnl::memory::data_type ParseDtype(const std::string& dtype);

// The descriptor of a tensor in a layout.  Any permutation of the axes works, and every blocked
// layout that oneDNN has a name for; "any" gives the descriptor that lets a primitive choose.
// Throws InvalidInput where tag and rank disagree, Unsupported on unknown tags and dimensions too
// large.
dnnl::memory::desc MakeDesc(const Dims& dims, dnnl::memory::data_type type, const std::string& tag);

// The tag of a descriptor.  Axes of extent 1 make several tags equivalent: the plain one comes
// first, then channels last, then whatever the strides say.  "opaque" where no tag fits.
std::string TagOf(const dnnl::memory::desc& desc);

// True if both put every element at the same place.  Unlike operator==, axes of extent 1 are free
// in their strides.
bool SamePlacement(const dnnl::memory::desc& a, const dnnl::memory::desc& b);
// The same of numbers of any two types, whatever bytes there are behind them.
bool SamePlaces(const dnnl::memory::desc& a, const dnnl::memory::desc& b);

// Renames, without moving any element, two operands of one primitive so that both are plain or both
// channels last where they can be.  Axes of extent 1 give one placement several names, oneDNN picks
// its kernel by name, and its primitive cache answers with whichever name was asked first.
void AgreeOnNames(dnnl::memory::desc* src, dnnl::memory::desc* dst);

// Whether the tensor has no elements.  oneDNN's reorders divide by its extents.
bool IsEmpty(const dnnl::memory::desc& desc);

// True if the bytes are stored without gaps, padded tails included.
bool IsDense(const dnnl::memory::desc& desc);

// True if an image's channels stand side by side, and its pixels in their order without gaps.
bool IsChannelsLast(const dnnl::memory::desc& desc);

// The same as plain numbers.
PhysicalLayout ToPhysical(const dnnl::memory::desc& desc);

// The type of a tensor's numbers; nothing for one that kernels of our own do not have.
std::optional<Number> NumberOf(const dnnl::memory::desc& desc);

// Whether they are real ones that these kernels have.
bool IsReal(const dnnl::memory::desc& desc);

// The same of real numbers; throws Unsupported, with the operand's role, on others.
Real RealOf(const dnnl::memory::desc& desc, const char* role);

// The distance of neighbours where all axes behind the channels are one axis, `alone` where there
// is one place; 0 where they are not one axis.
int64_t PlaceStride(const Dims& dims, const Dims& strides, int64_t alone);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_LAYOUT_H_
