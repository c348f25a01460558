// Constants that are stored in the layout some stage wants them in, so that what loads them packs
// nothing.
//
// A stored form is a fact about the bytes, not a promise about who reads them: a stage that
// wants another layout, on another machine, say, gets it from the plain bytes, which can always be
// had back.  Forms from which they could not (Winograd's), and those of a constant that is wanted
// in several, stand beside it, named by all that decides their bytes.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_PACKED_CONSTANTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_PACKED_CONSTANTS_H_

#include <memory>
#include <string>
#include <vector>

#include "weights/constant.h"
#include "weights/weights.h"

namespace mxplan {

// True if `request` wants the bytes of a constant just as they are stored.
bool WantsStoredForm(const ConstantData& constant, const Weights::Request& request);

// The plain bytes of a constant: where they are, or made anew.
std::shared_ptr<const char> PlainBytes(const ConstantData& constant, const Library& library);

// The constant in the plain order, in memory of its own.
ConstantData Unpacked(const ConstantData& constant, const Library& library);

// A text that two requests share only if they make the same bytes of one region's constants; empty
// where there is none.
std::string NameOf(const Weights::Request& request);

// The constants, those in their packed form that are wanted in one form alone, and behind them the
// other forms.  `inplace`: whether a constant is also read as it is, by its number.
std::vector<ConstantData> PackedConstants(const Weights& weights,
                                          const std::vector<Weights::Packed>& packed,
                                          const std::vector<bool>& inplace);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_PACKED_CONSTANTS_H_
