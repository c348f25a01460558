// The planner's C interface, which Python calls through ctypes: numbers and arrays only.
//
// No function keeps what it was given, throws, or shares anything between calls, so that several
// threads may plan at once.
#ifndef TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PLANNER_H_
#define TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PLANNER_H_

#include <cstdint>

extern "C" {

// One connected part of one arena.
typedef struct {
  int64_t items;
  int64_t sections;
  const int64_t* heads;      // first block of each item, and the number of all
  const int64_t* blocks;     // of each block: first, last, low, high
  const int64_t* alignment;  // of each item
} MxplanInstance;

typedef struct {
  int64_t floor;        // nothing below this height is possible
  int64_t goal;         // nothing below this height is of use
  int64_t capacity;     // a height that matters more than the others, -1 for none
  int64_t fit_only;     // not zero: stop at the capacity
  int64_t max_nodes;    // placements
  double seconds;       // negative for no limit
  const int32_t* stop;  // whoever waits may set it to end the search; may be null
} MxplanRequest;

typedef struct {
  int64_t height;
  int64_t proven;  // not zero: nothing lower is possible
  int64_t nodes;
} MxplanAnswer;

// Quick plans first, then the exact search.  Writes a base for each item; returns 0, or 1 if there
// was not enough memory.
int mxplan_plan(const MxplanInstance* instance, const MxplanRequest* request, int64_t* bases,
                MxplanAnswer* answer);

// One exact search for a plan of `request->capacity`, by the order numbered `order` and the tie
// numbered `tie`, or with a negative `order` the search for groups that interlock.  The answer's
// height is -1 if no plan was found, and `proven` then says that there is none.
int mxplan_search(const MxplanInstance* instance, const MxplanRequest* request, int64_t order,
                  int64_t tie, int64_t* bases, MxplanAnswer* answer);

}  // extern "C"

#endif  // TVM_MXPLAN_CORE_ALLOCATION_NATIVE_PLANNER_H_
