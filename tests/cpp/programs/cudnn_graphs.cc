// Regions whose steps are kept as a graph, and the timing of plans, against a stand-in for CUDA and
// cuDNN (recording_cuda.cc): calls and their order, errors at each, what is given back.
//
// Prints a line for each check that failed; the status is 1 if there was one.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cudnn/plans/failures.h"
#include "cudnn/plans/timing.h"
#include "recorded_regions.h"

namespace {

using namespace recorded;
using Calls = std::vector<std::string>;

const Calls kReplayed = {"launch stream 0", "graph transform", "graph execute", "graph transform"};

std::string Replaying(const std::vector<Spare>& spares = {}) {
  return Record(256, {4, 1, 2, 3}, {}, spares, true);
}

int Graphs() { return Find<int (*)()>("RecordingGraphs")(); }

Calls CallsOf(const Caller& caller, mxplan::Region* region) {
  Take();
  caller.Run(region);
  return Take();
}

int Count(const Calls& calls, const std::string& call) {
  return static_cast<int>(std::count(calls.begin(), calls.end(), call));
}

void CheckReplays() {
  auto region = MakeRegion(Replaying());
  Caller caller;
  Calls first = CallsOf(caller, region.get());
  Check(Count(first, "capture 1") == 0 && Count(first, "execute") == 1,
        "the first run is none that is captured: " + Joined(first));
  Calls second = CallsOf(caller, region.get());
  Check(Count(second, "capture 1") == 1 && Count(second, "launch stream 0") == 1,
        "the second is: " + Joined(second));
  auto at = [&](const std::string& call) {
    return std::find(second.begin(), second.end(), call) - second.begin();
  };
  Check(at("capture 1") < at("execute") && at("execute") < at("captured") &&
            at("captured") < at("instantiate") && at("instantiate") < at("launch stream 0"),
        "in this order: " + Joined(second));
  Check(CallsOf(caller, region.get()) == kReplayed, "then it is launched, and nothing else");
  Caller other;
  Calls moved = CallsOf(other, region.get());
  Check(Count(moved, "capture 1") == 1, "other addresses are captured: " + Joined(moved));
  Check(CallsOf(other, region.get()) == kReplayed && CallsOf(caller, region.get()) == kReplayed,
        "and both are kept");
  std::vector<Caller> more(4);
  for (const Caller& one : more) CallsOf(one, region.get());
  Check(Count(CallsOf(caller, region.get()), "capture 1") == 1, "four are kept, no more");
  region.reset();
  Check(Graphs() == 0, mxplan::Concat("an ended region left ", Graphs()));
}

void CheckOffByDefault() {
  auto region = MakeRegion(Record());
  Caller caller;
  for (int i = 0; i < 3; ++i) {
    Calls calls = CallsOf(caller, region.get());
    Check(Count(calls, "execute") == 1 && Count(calls, "capture 1") == 0, "off by default");
  }
}

void CheckManyAddresses() {
  auto region = MakeRegion(Replaying({{"eng20", 0, {4, 1, 2, 3}}}));
  size_t before = mxplan::NotedFailures().size();
  std::vector<Caller> callers(12);
  int captures = 0;
  for (const Caller& one : callers) captures += Count(CallsOf(one, region.get()), "capture 1");
  Check(captures == 8, mxplan::Concat(captures, " captures in vain"));
  std::vector<mxplan::PlanFailure> noted = mxplan::NotedFailures();
  Check(noted.size() == before + 1 && Says(noted.back().reason, "others in every call"),
        "that is noted once");
  Check(CallsOf(callers[0], region.get()) == Calls({"transform", "execute", "transform"}),
        "steps run one by one then");
}

// An error at the n-th call of the run that captures, or launches: the steps run one by one, which
// is noted, and nothing is left.
void CheckErrors() {
  const int before = Live(), graphs = Graphs();
  int spared = 0, calls = 0;
  for (bool failed = true; failed; ++calls) {
    auto region =
        MakeRegion(Record(mxplan::Concat(calls).size() + 300, {4, 1, 2, 3}, {}, {}, true));
    {
      Caller caller;
      caller.Run(region.get());
      Take();
      FailAt(calls, 3);
      std::string said = SaidBy([&] { caller.Run(region.get()); });
      failed = !Find<int (*)()>("RecordingFailing")();
      FailAt(-1, 0);
      Calls made = Take();
      Check(said.empty(), mxplan::Concat("call ", calls, ": ", said));
      const bool one_by_one = made.size() >= 3 && made.back() == "transform";
      spared += failed && one_by_one ? 1 : 0;
      Check(!failed || one_by_one, mxplan::Concat("call ", calls, ": ", Joined(made)));
      Check(SaidBy([&] { caller.Run(region.get()); }).empty(), "and it runs again");
      if (failed) Check(Count(Take(), "execute") == 1, "without a graph");
    }
    region.reset();
    Check(Live() == before && Graphs() == graphs,
          mxplan::Concat("call ", calls, " left ", Live() - before, " and ", Graphs() - graphs));
  }
  Check(spared >= 8, mxplan::Concat("only ", spared, " calls could fail"));
}

// A plan that is refused in a graph is none that failed: steps run one by one, by the same plan,
// though another one stands by.
void CheckRefusals() {
  auto region = MakeRegion(Replaying({{"eng21", 0, {4, 1, 2, 3}}}));
  Caller caller;
  caller.Run(region.get());
  const size_t before = mxplan::NotedFailures().size();
  Take();
  FailOn("execute", 3);
  Check(SaidBy([&] { caller.Run(region.get()); }).empty(), "steps run one by one");
  Calls calls = Take();
  Check(Count(calls, "create 5") == 0, "no other plan is built: " + Joined(calls));
  std::vector<mxplan::PlanFailure> noted = mxplan::NotedFailures();
  Check(noted.size() == before + 1 && noted.back().engine == "the graph of the region" &&
            Says(noted.back().reason, "cudnnBackendExecute"),
        "the graph is noted, and no plan");
  Check(CallsOf(caller, region.get()) == Calls({"transform", "execute", "transform"}),
        "and so they go on");
}

// Whoever calls, steps run once for each call, one by one or in a graph.
void CheckThreads() {
  constexpr int kThreads = 8, kCalls = 20;
  auto region = MakeRegion(Replaying());
  Take();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Caller caller;
      for (int j = 0; j < kCalls; ++j) caller.Run(region.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  Calls calls = Take();
  // What is captured is noted when it is captured and when it is launched.
  const int captured = Count(calls, "captured");
  Check(Count(calls, "execute") + Count(calls, "graph execute") - captured == kThreads * kCalls,
        "a call got lost, or ran twice");
  region.reset();
  Check(Graphs() == 0, mxplan::Concat("threads left ", Graphs()));
}

// --- times
// -----------------------------------------------------------------------------------------

const std::map<int64_t, int64_t> kBytes = {{1, 240}, {2, 42}, {3, 14}, {4, 560}};

void Lasts(const std::string& engine, double microseconds) {
  Find<void (*)(const char*, double)>("RecordingLasts")(("{\"engine\":\"" + engine + "\"}").c_str(),
                                                        microseconds);
}

std::string Candidates() {
  return Record(256, {4, 1, 2, 3}, {}, {{"eng31", 64, {4, 1, 2, 3}}, {"eng32", 0, {1, 2, 3, 4}}});
}

std::vector<mxplan::PlanTimes> Times(const std::map<int64_t, int64_t>& bytes = kBytes) {
  return mxplan::TimePlans(mxplan::ReadPlan(Candidates()), bytes, {2, 3, 4});
}

void CheckTimes() {
  Lasts("eng7", 40);
  Lasts("eng31", 10);
  Lasts("eng32", 25);
  Take();
  std::vector<mxplan::PlanTimes> found = Times();
  Calls calls = Take();
  Check(found.size() == 3, "a plan each");
  const double expected[] = {40, 10, 25};
  for (size_t i = 0; i < found.size(); ++i) {
    Check(found[i].microseconds.size() == 4 && found[i].failure.empty(), "a time for each round");
    for (double one : found[i].microseconds) {
      Check(one > expected[i] - 0.1 && one < expected[i] + 0.1, mxplan::Concat(i, ": ", one));
    }
  }
  Check(Count(calls, "execute") == 3 * (2 + 3), "warm-up, then runs that are captured");
  Check(Count(calls, "launch stream 0") == 3 * 4 && Count(calls, "graph execute") == 3 * 3 * 4,
        "rounds of what was captured: " + Joined(calls));
  Check(Count(calls, "record stream 0") == 2 * 3 * 4 && Count(calls, "elapsed") == 3 * 4,
        "events around them: " + Joined(calls));
  auto first_event = std::find(calls.begin(), calls.end(), "record stream 0");
  Check(std::count(calls.begin(), first_event, std::string("execute")) == 15,
        "warm-up comes first");
  Check(Count(calls, "event 0") == 2, "events with times");
  Check(Live() == 0 && Graphs() == 0, mxplan::Concat(Live(), " and ", Graphs(), " left"));
}

// A plan that fails is out, with its reason; what is no plan's fault is an error.  Nothing is left.
void CheckTimingErrors() {
  int calls = 0, dropped = 0, thrown = 0, silent = 0, spared = 0;
  for (bool failed = true; failed; ++calls) {
    Take();
    FailAt(calls, 3);
    std::vector<mxplan::PlanTimes> found;
    std::string said = SaidBy([&] { found = Times(); });
    failed = !Find<int (*)()>("RecordingFailing")();
    FailAt(-1, 0);
    // What cannot be captured runs one by one: a plan of three.
    const bool one_by_one = Count(Take(), "graph execute") == 2 * 3 * 4;
    Check(Live() == 0 && Graphs() == 0,
          mxplan::Concat("call ", calls, " left ", Live(), " and ", Graphs()));
    int out = 0;
    for (const mxplan::PlanTimes& one : found) out += one.failure.empty() ? 0 : 1;
    for (const mxplan::PlanTimes& one : found) {
      Check(one.failure.empty() == !one.microseconds.empty(), "times or a reason");
    }
    dropped += out;
    thrown += said.empty() ? 0 : 1;
    const bool told = out == 1 || Says(said, "cuda") || Says(said, "cudnn");
    spared += failed && !told && one_by_one ? 1 : 0;
    silent += failed && !told && !one_by_one ? 1 : 0;
  }
  // Awaiting the stream in the end has no result that could be wrong.
  Check(silent == 1, mxplan::Concat(silent, " errors got lost"));
  Check(dropped > 15 && thrown > 10, mxplan::Concat(dropped, " out, ", thrown, " errors"));
  Check(spared >= 3 * 6, mxplan::Concat(spared, " that could not be captured"));
  for (const mxplan::PlanTimes& one : Times({{1, 240}})) {
    Check(Says(one.failure, "which has no bytes"), "a tensor without bytes: " + one.failure);
  }
  Set("sm", 80);
  Check(Says(SaidBy([&] { Times(); }), "measure with the device properties"), "another device");
  Set("sm", 90);
  Set("devices", 0);
  Check(Says(SaidBy([&] { Times(); }), "no GPU is here"), "no device");
  Set("devices", 1);
}

}  // namespace

int main(int, char** arguments) {
  if (!Begin(arguments[1])) return 1;
  CheckReplays();
  CheckOffByDefault();
  CheckManyAddresses();
  CheckErrors();
  CheckRefusals();
  CheckThreads();
  CheckTimes();
  CheckTimingErrors();
  return End();
}
