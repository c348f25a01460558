// The life of a region on a GPU, against a stand-in for CUDA and cuDNN (recording_cuda.cc): which
// calls are made, in which order, what is given back, and what becomes of an error at each call.
//
// Prints a line for each check that failed; the status is 1 if there was one.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cudnn/plans/failures.h"
#include "recorded_regions.h"

namespace {

using namespace recorded;

void CheckOrder() {
  auto region = MakeRegion(Record());
  Caller caller;
  Take();
  caller.Run(region.get());
  std::vector<std::string> first = Take();
  auto at = [&](const std::string& call) {
    return std::find(first.begin(), first.end(), call) - first.begin();
  };
  Check(at("create 5") < at("finalize"), "a plan is built before it runs: " + Joined(first));
  Check(at("cudaMemcpy 42 kind 1") < at("execute"), "weights are there before a plan runs");
  Check(at("cudaMemcpy 14 kind 1") < at("execute"), "the bias is there before a plan runs");
  Check(std::count(first.begin(), first.end(), "transform") == 2, "two conversions");
  Check(at("transform") < at("execute") && first.back() == "transform", "steps in their order");
  Check(at("cudnnSetStream 0") < at("transform"), "the stream is set before anything runs");
  caller.Run(region.get());
  std::vector<std::string> warm = Take();
  Check(warm == std::vector<std::string>{"transform", "execute", "transform"},
        "a warm call makes nothing: " + Joined(warm));
  Caller other;
  Take();
  other.Run(region.get());
  Check(Take() == std::vector<std::string>{"transform", "execute", "transform"},
        "other inputs and outputs touch conversions alone");
  Check(Says(SaidBy([&] { caller.Run(region.get(), mxplan::MemorySpace::Kind::kHost); }),
             "is not on the GPU"),
        "tensors of the CPU are refused");
  const auto gpu = mxplan::MemorySpace::Kind::kCuda;
  std::string said = SaidBy([&] { caller.Run(region.get(), gpu, 7, 2, 1); });
  Check(Says(said, "input 0 (x) is on GPU 1, the calling thread works on GPU 0"), said);
  Check(Take().empty(), "and nothing of another GPU's is touched");
}

// Numbers of a plan are handed over from the host's memory, behind the tensors.
void CheckScalars() {
  auto region = MakeRegion(Record(0, {4, 1, 2, 3}, {{500, std::string("\0\0\x80\x3f", 4)}}));
  Caller caller;
  Take();
  caller.Run(region.get());
  std::vector<std::string> calls = Take();
  auto has = [&](const char* call) { return std::count(calls.begin(), calls.end(), call) == 1; };
  Check(has("set 1000 type 3 count 5") && has("set 1001 type 6 count 5"), Joined(calls));
  Check(has("number 1065353216"), "the number is 1.0f: " + Joined(calls));
  std::string said = SaidBy([&] {
    caller.Run(MakeRegion(Record(0, {4, 1, 2, 3}, {{500, std::string(17, '1')}})).get());
  });
  Check(Says(said, "a number of 17 bytes"), said);
}

// An error at the n-th call that can fail: it is named, or the plan that stands by runs; it leaves
// nothing behind, and the next call works.
void CheckErrors(const std::string& record) {
  int before = Live();
  int calls = 0, spared = 0;
  const bool has_spare = record != Record();
  for (bool failed = true; failed; ++calls) {
    auto region = MakeRegion(record);
    {
      Caller caller;
      Take();
      FailAt(calls, 3);
      std::string said = SaidBy([&] { caller.Run(region.get()); });
      const bool reached = !Find<int (*)()>("RecordingFailing")();
      FailAt(-1, 0);
      std::vector<std::string> made = Take();
      auto plans = std::count(made.begin(), made.end(), "create 5");
      // A plan that cannot be built, or does not run, is replaced where one stands by.
      const bool replaced = reached && said.empty();
      spared += replaced ? 1 : 0;
      Check(!replaced || (has_spare && plans == 2), "an error got lost: " + Joined(made));
      failed = reached;
      Check(said.empty() || Says(said, "cuda") || Says(said, "cudnn"), "unnamed: " + said);
      Check(said.empty() || Says(said, "STAND_IN") || Says(said, "of the stand-in"),
            "without the library's words: " + said);
      std::string again = SaidBy([&] { caller.Run(region.get()); });
      Check(again.empty(), mxplan::Concat("after a failure of call ", calls, ": ", again));
    }
    region.reset();
    Check(Live() == before, mxplan::Concat("call ", calls, " left ", Live() - before));
    Take();
  }
  Check(spared == (has_spare ? 5 : 0), mxplan::Concat(spared, " errors were spared"));
  Check(calls > 15, mxplan::Concat("only ", calls, " calls can fail"));
  Caller caller;
  auto region = MakeRegion(Record());
  FailAt(0, 2);
  Check(Says(SaidBy([&] { mxplan::CudaMemory().Allocate(int64_t{1} << 40); }), "bytes left"),
        "out of memory has words of its own");
  FailAt(-1, 0);
}

std::string WithSpare() { return Record(256, {4, 1, 2, 3}, {}, {{"eng9", 128, {1, 2, 3, 4}}}); }

// The notes of failures since `before`, as text.
std::string Noted(size_t before) {
  std::string text;
  std::vector<mxplan::PlanFailure> noted = mxplan::NotedFailures();
  for (size_t i = before; i < noted.size(); ++i) {
    const mxplan::PlanFailure& one = noted[i];
    text += one.step.region + "/" + one.step.step + " " + one.engine + " -> " + one.next + ": " +
            one.reason + "; ";
  }
  return text;
}

// A plan that fails while it runs, or while it is built, gives way to the one that stands by: once,
// for good, and noted.
void CheckSpares() {
  auto execute = [] { return Says(Joined(Take()), "execute"); };
  {
    auto region = MakeRegion(Record(256, {4, 1, 2, 3}, {}, {{"eng10", 64, {1, 2, 3, 4}}}));
    Caller caller;
    caller.Run(region.get());
    Take();
    size_t before = mxplan::NotedFailures().size();
    FailOn("execute", 3);
    caller.Run(region.get());
    std::vector<std::string> calls = Take();
    auto count = [&](const char* call) { return std::count(calls.begin(), calls.end(), call); };
    Check(count("execute") == 2 && count("create 5") == 1, "the next plan runs: " + Joined(calls));
    Check(calls.back() == "transform", "what comes behind runs on: " + Joined(calls));
    Check(Noted(before) == "r/c eng7 -> eng10: cudnnBackendExecute: CUDNN_STATUS_OF_THE_STAND_IN; ",
          Noted(before));
    caller.Run(region.get());
    Check(Take() == std::vector<std::string>{"transform", "execute", "transform"},
          "from then on nothing is made");
    FailOn("execute", 3);
    std::string said = SaidBy([&] { caller.Run(region.get()); });
    Check(Says(said, "convolution c: cudnnBackendExecute"), "there is no third: " + said);
    Check(Says(Noted(before), "r/c eng10 -> : cudnnBackendExecute"), Noted(before));
    Check(SaidBy([&] { caller.Run(region.get()); }).empty() && execute(), "and it may run again");
  }
  {
    size_t before = mxplan::NotedFailures().size();
    Caller caller;
    FailOn("finalize", 3);  // of the first plan
    auto region = MakeRegion(Record(256, {4, 1, 2, 3}, {}, {{"eng11", 0, {1, 2, 3, 4}}}));
    Check(SaidBy([&] { caller.Run(region.get()); }).empty() && execute(),
          "a plan that is not built");
    Check(
        Noted(before) == "r/c eng7 -> eng11: cudnnBackendFinalize: CUDNN_STATUS_OF_THE_STAND_IN; ",
        Noted(before));
    FailOn("", 0);
  }
  // Eight threads meet the failure; one of them sees to it.
  auto region = MakeRegion(Record(256, {4, 1, 2, 3}, {}, {{"eng12", 0, {4, 1, 2, 3}}}));
  {
    Caller caller;
    caller.Run(region.get());
  }
  size_t before = mxplan::NotedFailures().size();
  Take();
  FailOn("execute", 3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Caller caller;
      for (int j = 0; j < 20; ++j) caller.Run(region.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> calls = Take();
  Check(std::count(calls.begin(), calls.end(), "execute") == 161, "one call more than runs");
  Check(std::count(calls.begin(), calls.end(), "create 5") == 1, "one plan more");
  Check(mxplan::NotedFailures().size() == before + 1, "one note: " + Noted(before));
}

void CheckOtherDevices() {
  Caller caller;
  auto said = [&] { return SaidBy([&] { caller.Run(MakeRegion(Record()).get()); }); };
  Set("sm", 80);
  Check(Says(said(), "is for SM 90") && Says(said(), "here is SM 80"), said());
  Set("sm", 90);
  Set("multiprocessors", 108);
  Check(Says(said(), "108 multiprocessors"), said());
  Set("multiprocessors", 132);
  Set("cudnn", 91500);
  Check(Says(said(), "cuDNN 91500"), said());
  Set("cudnn", 91900);
  Set("driver", 12080);
  Check(Says(said(), "driver 12080"), said());
  Set("driver", 13000);
  Set("devices", 0);
  Check(Says(said(), "no GPU is here (no CUDA-capable device"), said());
  Set("devices", 1);
  Check(said().empty(), said());
}

void CheckDamagedPlans() {
  Caller caller;
  std::string good = Record();
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::string said = SaidBy([&] { caller.Run(MakeRegion(bad).get()); });
    Check(Says(said, "execution plan"), mxplan::Concat("byte ", at, ": ", said));
  }
  Check(Says(SaidBy([&] { caller.Run(MakeRegion("").get()); }), "carries no execution plan"),
        "a step without a plan");
  for (int64_t uid : {0, 5, 9, -3}) {
    std::string said = SaidBy([&] { caller.Run(MakeRegion(Record(0, {uid})).get()); });
    Check(Says(said, "which is none of the step's"), mxplan::Concat("uid ", uid, ": ", said));
  }
}

// Threads have handles of their own, and the one stream keeps their work in order.
void CheckThreads() {
  constexpr int kThreads = 8, kCalls = 50;
  auto region = MakeRegion(Record());
  int handles = Handles();
  Take();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Caller caller;
      for (int j = 0; j < kCalls; ++j) caller.Run(region.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> calls = Take();
  Check(std::count(calls.begin(), calls.end(), "execute") == kThreads * kCalls, "calls were lost");
  Check(std::count(calls.begin(), calls.end(), "create 5") == 1, "a plan was built more than once");
  Check(Handles() == handles, "handles of threads that ended are left");
}

// Regions that begin at once build their plans one after another: a handle is for one thread.
void CheckBuilding() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      Caller caller;
      caller.Run(MakeRegion(Record()).get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> calls = Take();
  Check(std::count(calls.begin(), calls.end(), "create 5") == 8, "a plan for each region");
  Check(Find<int (*)()>("RecordingShared")() == 0, "two threads built plans with one handle");
  Check(Live() == 0, mxplan::Concat("regions that ended left ", Live()));
}

}  // namespace

int main(int, char** arguments) {
  if (!Begin(arguments[1])) return 1;
  CheckOrder();
  Check(Live() == 0, mxplan::Concat("an ended region left ", Live()));
  CheckScalars();
  CheckErrors(Record());
  CheckErrors(WithSpare());
  CheckSpares();
  CheckOtherDevices();
  CheckDamagedPlans();
  CheckThreads();
  Take();
  CheckBuilding();
  return End();
}
