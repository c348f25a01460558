// Execution plans that failed on this machine: a note of the process, which reports read.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_FAILURES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_FAILURES_H_

#include <string>
#include <vector>

namespace mxplan {

// A step as notes call it: names are another region's too, the digest of its plans hardly.
struct StepName {
  std::string region, step;
  std::string plans;  // in hexadecimal digits
};

struct PlanFailure {
  StepName step;
  std::string engine;
  std::string reason;
  std::string next;  // the engine that ran in its place, "" where there was none
};

// Safe to call from many threads.  The same failure is noted once, the last 256 are kept.
void NoteFailure(const PlanFailure& failure);
std::vector<PlanFailure> NotedFailures();

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_FAILURES_H_
