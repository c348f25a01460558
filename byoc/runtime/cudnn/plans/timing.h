// Times of execution plans on the GPU of the calling thread, between events in its stream.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_TIMING_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_TIMING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cudnn/plans/plan.h"

namespace mxplan {

struct TimingRules {
  int warm_up = 3;  // runs of each plan before any is timed
  int runs = 10;    // between two events, as one CUDA graph where they can be captured
  int rounds = 7;   // in each of which every plan has its turn
};

struct PlanTimes {
  std::vector<double> microseconds;  // of a run, one for each round
  std::string failure;               // why the plan did not run; there are no times then
};

// Times of the plans of one step.  `bytes` of its tensors by uid; what they hold are small finite
// numbers of any type.  All that it takes is given back.  Throws Unsupported where the plans are
// for another device, or the device itself fails.
std::vector<PlanTimes> TimePlans(const PlanRecord& record, const std::map<int64_t, int64_t>& bytes,
                                 const TimingRules& rules);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_TIMING_H_
