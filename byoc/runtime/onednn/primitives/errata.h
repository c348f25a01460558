// Implementations of oneDNN that are known to compute wrong numbers, and when.
//
// An entry is found by scripts/sweep_kernels, and stands until the versions end that it holds for.
// A condition of typed fields over the step decides, never a shape that happened to be
// seen.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_ERRATA_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_ERRATA_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/step_descriptor.h"

namespace mxplan {

// A number from `least` to `most`.
struct Range {
  int64_t least = 0;
  int64_t most = INT64_MAX;
  bool Has(int64_t number) const { return least <= number && number <= most; }
};

// A part that a step may have.
enum class Presence : uint8_t { kAny, kSome, kNone };

// The order an image is stored in.
enum class Order : uint8_t { kAny, kPlain, kChannelsLast, kBlocked, kNotPlain };

// Every field has to hold.
struct Condition {
  const char* kind;                          // '': any
  const char* algorithm = "";                // '': any
  Presence epilogue = Presence::kAny;        // a bias or post-ops behind the sums
  std::optional<PostOp::Kind> post_op = {};  // one of this kind, ...
  const char* post_op_algorithm = "";        // ... with this algorithm ('': any)
  Order order = Order::kAny;                 // of src
  Order dst_order = Order::kAny;
  int64_t not_multiple = 0;      // all of src's channels are no multiple of this
  int64_t dst_not_multiple = 0;  // likewise
  Range src_channels = {};       // of one group
  Range dst_channels = {};       // likewise
  Range groups = {};
  // Of a window's axes but the last one, which are 1 where there are none: the largest extent, the
  // largest stride.
  Range kernel_rows = {};
  Range row_stride = {};
  // Pixels from a window's end to the next, or behind the last one, along the axis of the most.
  Range gap = {.least = INT64_MIN};
  Presence byte_products = Presence::kAny;  // src has 8 bits and is multiplied by weights
  bool no_vnni = false;        // oneDNN generates code for no instructions of AVX-512 VNNI
  bool zero_point = false;     // there is one, of src or of dst
  bool reads_by_rows = false;  // a conversion may follow src's order in place of dst's
};

using Version = std::array<int, 3>;

// The way out for a step.  An epilogue runs apart as primitives of its own, on the result; numbers
// are converted in one order and brought into the other by a primitive of its own.
enum class Remedy : uint8_t { kNextImplementation, kEpilogueApart, kOrderApart };

struct Erratum {
  const char* name;
  const char* implementation;  // a name, where * stands for anything
  Condition condition;
  Version first, last;  // of oneDNN; `first` is the oldest one that was tried
  const char* wrong;    // with the results, for people
  const char* found_by;
  Remedy remedy = Remedy::kNextImplementation;
};

const std::vector<Erratum>& Errata();

bool Holds(const Condition& condition, const StepDescriptor& step);

// Whether the oneDNN that is loaded is one of an entry's.
bool IsOfThisVersion(const Erratum& erratum);

// The whole table as JSON, for reports and documents.
std::string ErrataJson();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_PRIMITIVES_ERRATA_H_
