// The loop that times plans; see timing.h.
#include "cudnn/plans/timing.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "cudnn/device.h"
#include "cudnn/plans/capture.h"

namespace mxplan {
namespace {

// 0.01 in float32 and bfloat16, 1.06 in float16, 60 in integers of 8 bits.
constexpr int kByte = 0x3c;

class Event {
 public:
  Event() {
    CheckCuda(Cuda().cudaEventCreateWithFlags(&event_, kCudaEventWithTime),
              "cudaEventCreateWithFlags");
  }
  ~Event() { Taken(Cuda().cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Record(CudaStream stream) const {
    CheckCuda(Cuda().cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  void Await() const { CheckCuda(Cuda().cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  double MicrosecondsSince(const Event& from) const {
    float milliseconds = 0;
    CheckCuda(Cuda().cudaEventElapsedTime(&milliseconds, from.event_, event_),
              "cudaEventElapsedTime");
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  CudaEvent event_ = nullptr;
};

// A plan that can run, with the addresses that it runs on, and its runs between two events.
struct Candidate {
  Candidate() = default;
  Candidate(Candidate&& other) noexcept
      : plan(std::move(other.plan)),
        pack(std::move(other.pack)),
        runs(std::exchange(other.runs, nullptr)) {}
  ~Candidate() {
    if (runs != nullptr) Taken(Cuda().cudaGraphExecDestroy(runs));
  }

  std::unique_ptr<LoadedPlan> plan;
  std::unique_ptr<VariantPack> pack;
  CudaGraphExec runs = nullptr;  // null where they cannot be captured
};

class Tensors {
 public:
  explicit Tensors(const std::map<int64_t, int64_t>& bytes, int64_t workspace, CudaStream stream) {
    for (const auto& [uid, size] : bytes) {
      held_[uid] = CudaMemory().Allocate(size);
      CheckCuda(Cuda().cudaMemsetAsync(held_[uid].get(), kByte, static_cast<size_t>(size), stream),
                "cudaMemsetAsync");
    }
    if (workspace > 0) workspace_ = CudaMemory().Allocate(workspace);
  }

  std::unique_ptr<VariantPack> Pack(const EnginePlan& plan) const {
    std::vector<int64_t> uids = plan.uids;
    std::vector<void*> addresses;
    for (int64_t uid : uids) {
      auto found = held_.find(uid);
      if (found == held_.end())
        ThrowInvalidInput("a plan with tensor ", uid, ", which has no bytes");
      addresses.push_back(found->second.get());
    }
    for (const PlanScalar& scalar : plan.scalars) {
      uids.push_back(scalar.uid);
      addresses.push_back(const_cast<char*>(scalar.bytes));  // cuDNN reads it
    }
    auto pack = std::make_unique<VariantPack>();
    pack->Make(uids, addresses, workspace_.get());
    return pack;
  }

 private:
  std::map<int64_t, std::shared_ptr<char>> held_;
  std::shared_ptr<char> workspace_;
};

// Returns when work that still reads what is given back has ended, whatever ended the timing.
class Awaited {
 public:
  explicit Awaited(CudaStream stream) : stream_(stream) {}
  ~Awaited() { Taken(Cuda().cudaStreamSynchronize(stream_)); }
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;

 private:
  CudaStream stream_;
};

class Timing {
 public:
  Timing(const PlanRecord& record, const Tensors& tensors, CudaQueue* queue)
      : record_(record), queue_(queue), times_(record.plans.size()) {
    for (size_t i = 0; i < record_.plans.size(); ++i) {
      Candidate made;
      Try(i, [&] {
        BuildHandle handle(queue_->device());
        made.plan = std::make_unique<LoadedPlan>(record_.plans[i], handle.get());
        made.pack = tensors.Pack(record_.plans[i]);
      });
      candidates_.push_back(std::move(made));
    }
  }

  std::vector<PlanTimes> Run(const TimingRules& rules) {
    Event begin, end;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Try(i, [&] {
        for (int run = 0; run < rules.warm_up; ++run) ExecuteIn(queue_, i);
        // A fault on the device is told here, and is not the next plan's failure.
        CheckCuda(Cuda().cudaStreamSynchronize(queue_->stream()), "cudaStreamSynchronize");
        candidates_[i].runs = Captured(i, rules.runs);
      });
    }
    for (int round = 0; round < rules.rounds; ++round) {
      for (size_t i = 0; i < candidates_.size(); ++i) {
        Try(i, [&] {
          begin.Record(queue_->stream());
          RunAll(i, rules.runs);
          end.Record(queue_->stream());
          end.Await();
          times_[i].microseconds.push_back(end.MicrosecondsSince(begin) / rules.runs);
        });
      }
    }
    return std::move(times_);
  }

 private:
  template <typename F>
  void Try(size_t i, const F& action) {
    if (!times_[i].failure.empty()) return;
    try {
      action();
    } catch (const Error& error) {
      times_[i] = {{}, error.what()};
    }
  }

  void ExecuteIn(CudaQueue* queue, size_t i) {
    const Candidate& one = candidates_[i];
    CheckCudnn(
        Cuda().cudnnBackendExecute(queue->handle(), one.plan->descriptor(), one.pack->descriptor()),
        "cudnnBackendExecute");
  }

  // The runs of a plan as a graph: a small one ends before the next is handed over, so that runs
  // one by one would tell how long that takes.  Null where cuDNN or CUDA refuses.
  CudaGraphExec Captured(size_t i, int runs) {
    CudaGraphExec graph = nullptr;
    try {
      graph = capture_.Graph([&] {
        CudaQueue* queue = ThreadQueue();
        for (int run = 0; run < runs; ++run) ExecuteIn(queue, i);
      });
    } catch (const Error&) {
      graph = nullptr;  // they run one by one
    }
    ThreadQueue();  // in the thread's own stream again
    return graph;
  }

  void RunAll(size_t i, int runs) {
    if (candidates_[i].runs == nullptr) {
      for (int run = 0; run < runs; ++run) ExecuteIn(queue_, i);
      return;
    }
    CheckCuda(Cuda().cudaGraphLaunch(candidates_[i].runs, queue_->stream()), "cudaGraphLaunch");
  }

  const PlanRecord& record_;
  CudaQueue* queue_;
  std::vector<PlanTimes> times_;
  Capture capture_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<PlanTimes> TimePlans(const PlanRecord& record, const std::map<int64_t, int64_t>& bytes,
                                 const TimingRules& rules) {
  CudaQueue* queue = ThreadQueue();
  const DeviceFacts here = FactsOf(queue->device());
  if (!(record.made_for == here)) {
    ThrowUnsupported("plans are for ", ToText(record.made_for), ", here is ", ToText(here),
                     "; measure with the device properties of this machine");
  }
  int64_t workspace = 0;
  for (const EnginePlan& plan : record.plans) workspace = std::max(workspace, plan.workspace);
  const Tensors tensors(bytes, workspace, queue->stream());
  const Awaited awaited(queue->stream());
  return Timing(record, tensors, queue).Run(rules);
}

}  // namespace mxplan
