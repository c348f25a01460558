// The life of a region on a GPU, against a stand-in for CUDA and cuDNN (recording_cuda.cc): which
// calls are made, in which order, what is given back, and what becomes of an error at each call.
//
// Prints a line for each check that failed; the status is 1 if there was one.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cudnn/api.h"
#include "cudnn/device.h"
#include "cudnn/failures.h"
#include "cudnn/plan.h"
#include "library/library.h"
#include "recorded_regions.h"
#include "region/region.h"

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

// A softmax along the channels of an image that is stored channels last is one along a row.
void CheckSoftmax() {
  mxplan::Program program = MakeProgram("");
  Step softmax;
  softmax.kind = "softmax";
  softmax.name = "s";
  softmax.operands = {{"src", 3}, {"dst", 4}};
  softmax.attributes = {{"algorithm", std::string("log_softmax")}, {"axis", int64_t{1}}};
  for (size_t value : {4, 5}) program.values[value].shape[1] = Number(3);
  program.steps[1] = softmax;
  std::vector<ConstantData> constants = {Constant(weights, {7, 3, 1, 1}), Constant(bias, {7})};
  mxplan::Region region(program, constants, mxplan::FindLibrary("cudnn"));
  Caller caller;
  Take();
  caller.Run(&region, mxplan::MemorySpace::Kind::kCuda, 3);
  std::vector<std::string> calls = Take();
  auto at = [&](const std::string& call) {
    return std::find(calls.begin(), calls.end(), call) - calls.begin();
  };
  Check(std::count(calls.begin(), calls.end(), "tensor of type 2 40/3 3/1 1/1 1/1") == 2,
        "rows of three numbers: " + Joined(calls));
  Check(at("softmax 2 1") == static_cast<std::ptrdiff_t>(calls.size()) - 2, Joined(calls));
  caller.Run(&region, mxplan::MemorySpace::Kind::kCuda, 3);
  Check(Take() == std::vector<std::string>{"transform", "softmax 2 1", "transform"},
        "a warm call makes nothing");
  program.values[4].layout = "abcd";
  mxplan::Region other(program, constants, mxplan::FindLibrary("cudnn"));
  std::string said = SaidBy([&] { caller.Run(&other, mxplan::MemorySpace::Kind::kCuda, 3); });
  Check(Says(said, "a softmax from acdb to another layout"), said);
}

// y = concat(x[:, 1:3], x) where x stands in y already, and the box is copied from inside of x.
void CheckMovement() {
  mxplan::Program program = MakeProgram("");
  program.values[4].shape[1] = Number(2);  // t: the box, channels last
  program.values[5].shape[1] = Number(5);
  program.values[5].layout = "abcd";
  Step slice, concat;
  slice.kind = "slice";
  slice.name = "box";
  slice.operands = {{"src", 3}, {"dst", 4}};
  slice.attributes = {{"begin", std::vector<int64_t>{0, 1, 0, 0}}};
  concat.kind = "concat";
  concat.name = "both";
  concat.operands = {{"src", 4}, {"src", 0}, {"dst", 5}};
  concat.attributes = {{"axis", int64_t{1}}};
  program.steps[1] = slice;
  program.steps[2] = concat;
  std::vector<ConstantData> constants = {Constant(weights, {7, 3, 1, 1}), Constant(bias, {7})};
  mxplan::Region region(program, constants, mxplan::FindLibrary("cudnn"));
  Caller caller;
  auto* x = reinterpret_cast<uint16_t*>(caller.x.get());
  auto* y = reinterpret_cast<uint16_t*>(caller.y.get());
  for (int64_t i = 0; i < kIn; ++i) x[i] = static_cast<uint16_t>(1000 + i);
  Take();
  caller.Run(&region, mxplan::MemorySpace::Kind::kCuda, 5);
  std::vector<std::string> calls = Take();
  Check(std::count(calls.begin(), calls.end(), "transform") == 4,
        "in, box, two pieces: " + Joined(calls));
  int64_t wrong = 0;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 5; ++c) {
      for (int64_t i = 0; i < 20; ++i) {
        const int64_t channel = c < 2 ? 1 + c : c - 2;
        wrong += y[(n * 5 + c) * 20 + i] != x[(n * 3 + channel) * 20 + i] ? 1 : 0;
      }
    }
  }
  Check(wrong == 0, mxplan::Concat(wrong, " elements are not where they belong"));
  // One image, whose second piece stands in the whole already.
  for (mxplan::Value& value : program.values) {
    if (value.shape.size() == 4 && value.kind != mxplan::ValueKind::kConstant) {
      value.shape[0] = Number(1);
      value.layout = "abcd";
    }
  }
  program.values[3].alias_of = 5;
  program.values[3].alias_offset = Number(2 * 20 * 2);
  program.roots[3] = 5;
  concat.operands = {{"src", 4}, {"src", 3}, {"dst", 5}};
  program.steps[2] = concat;
  mxplan::Region placed(program, constants, mxplan::FindLibrary("cudnn"));
  Take();
  caller.Run(&placed, mxplan::MemorySpace::Kind::kCuda, 5, 1);
  calls = Take();
  Check(std::count(calls.begin(), calls.end(), "transform") == 3,
        "in, box, one piece: " + Joined(calls));
  for (int64_t i = wrong = 0; i < 5 * 20; ++i) {
    wrong += y[i] != x[i < 40 ? 20 + i : i - 40] ? 1 : 0;
  }
  Check(wrong == 0, mxplan::Concat(wrong, " elements are not where they belong, one in place"));
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

}  // namespace

int main(int, char** arguments) {
  stand_in = dlopen(arguments[1], RTLD_NOW);
  if (stand_in == nullptr) {
    std::printf("FAILED: %s\n", dlerror());
    return 1;
  }
  mxplan::SetCudaLibraries(arguments[1], arguments[1]);
  CheckOrder();
  Check(Live() == 0, mxplan::Concat("an ended region left ", Live()));
  CheckScalars();
  CheckSoftmax();
  CheckMovement();
  CheckErrors(Record());
  CheckErrors(WithSpare());
  CheckSpares();
  CheckOtherDevices();
  CheckDamagedPlans();
  CheckThreads();
  Check(Live() == 0, mxplan::Concat("in the end there is left ", Live()));
  if (failures == 0) std::printf("all checks hold\n");
  return failures == 0 ? 0 : 1;
}
