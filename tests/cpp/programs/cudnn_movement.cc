// Softmax, boxes, concatenations and copies on a GPU, against a stand-in for CUDA and cuDNN
// (recording_cuda.cc): which calls are made, what stands where, and what becomes of an error at
// each.
//
// Prints a line for each check that failed; the status is 1 if there was one.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cudnn/copies.h"
#include "cudnn/staging.h"
#include "recorded_regions.h"

namespace {

using namespace recorded;

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

// A pool by cuDNN's function: windows are described once, and what they have no word for is
// refused.
void CheckPools() {
  mxplan::Program program = MakeProgram("");
  Step pool;
  pool.kind = "pooling";
  pool.name = "p";
  pool.operands = {{"src", 3}, {"dst", 4}};
  auto numbers = [](std::vector<int64_t> two) { return two; };
  pool.attributes = {{"algorithm", std::string("max")},
                     {"kernel", numbers({3, 2})},
                     {"strides", numbers({1, 1})},
                     {"padding", numbers({1, 0})},
                     {"dilation", numbers({1, 1})}};
  for (size_t value : {4, 5}) program.values[value].shape[1] = Number(3);
  program.steps[1] = pool;
  std::vector<ConstantData> constants = {Constant(weights, {7, 3, 1, 1}), Constant(bias, {7})};
  Caller caller;
  auto run = [&] {
    mxplan::Region region(program, constants, mxplan::FindLibrary("cudnn"));
    caller.Run(&region, mxplan::MemorySpace::Kind::kCuda, 3);
    std::vector<std::string> first = Take();
    caller.Run(&region, mxplan::MemorySpace::Kind::kCuda, 3);
    return first;
  };
  Take();
  std::vector<std::string> calls = run();
  Check(std::count(calls.begin(), calls.end(), "windows 0 1 3+1/1 2+0/1") == 1, Joined(calls));
  calls = Take();
  const std::vector<std::string> warm = {"transform", "pool", "transform"};
  Check(calls.size() >= 3 && std::equal(warm.begin(), warm.end(), calls.begin()), Joined(calls));
  Check(std::count(calls.begin(), calls.end(), "drop windows") == 1,
        "given back: " + Joined(calls));
  program.steps[1].attributes["dilation"] = numbers({2, 1});
  std::string said = SaidBy([&] { run(); });
  Check(Says(said, "a pool of dilated windows"), said);
  program.steps[1].attributes["dilation"] = numbers({1, 1});
  program.steps[1].attributes["algorithm"] = std::string("median");
  said = SaidBy([&] { run(); });
  Check(Says(said, "pool median"), said);
  Take();
}

// Rows of a batch and zeros behind them: in the thread's stream, and nothing waits.
void CheckRows() {
  std::shared_ptr<char> there = mxplan::CudaMemory().Allocate(12);
  std::shared_ptr<char> padded = mxplan::CudaMemory().Allocate(20);
  std::fill_n(there.get(), 12, 7);
  std::fill_n(padded.get(), 20, 9);
  mxplan::SetStreamSource([](int) { return reinterpret_cast<mxplan::CudaStream>(64); });
  auto pad = [&] {
    mxplan::CopyOnGpu(padded.get(), there.get(), 12);
    mxplan::ClearOnGpu(padded.get() + 12, 8);
  };
  Take();
  pad();
  Check(Take() == std::vector<std::string>{"cudaMemcpyAsync 12 kind 3 stream 64",
                                           "cudaMemsetAsync 8 stream 64"},
        "rows, then zeros");
  Check(std::count(padded.get(), padded.get() + 20, 7) == 12, "rows are there");
  Check(std::count(padded.get() + 12, padded.get() + 20, 0) == 8, "zeros stand behind them");
  mxplan::CopyOnGpu(padded.get(), there.get(), 0);
  mxplan::ClearOnGpu(padded.get(), 0);
  Check(Take().empty(), "nothing to move is no call");
  for (const char* call : {"cudaMemcpyAsync", "cudaMemsetAsync"}) {
    FailOn(call, 700);
    Check(Says(SaidBy(pad), mxplan::Concat(call, ": a CUDA error of the stand-in")), call);
  }
  mxplan::SetStreamSource([](int) { return mxplan::CudaStream{nullptr}; });
  Take();
}

// Equal constants are on the device once, as long as somebody has them.
void CheckSharedConstants() {
  const std::vector<char> one(64, 1), other(64, 2);
  const std::string make = "cudaMalloc 64", copy = "cudaMemcpy 64 kind 1",
                    arrived = "cudaStreamSynchronize 0";
  auto copied = [](const std::vector<char>& bytes, int64_t count) {
    return mxplan::CudaMemory().Copied(bytes.data(), count);
  };
  Take();
  std::shared_ptr<char> first = copied(one, 64), again = copied(one, 64),
                        second = copied(other, 64);
  Check(first == again && first != second, "equal bytes are one copy");
  Check(Take() == std::vector<std::string>{make, copy, arrived, make, copy, arrived},
        "two copies are made, and have arrived");
  std::shared_ptr<char> part = copied(one, 32);
  Check(part != first, "a part is another constant");
  Take();
  first.reset();
  Check(Take().empty(), "somebody has it");
  again.reset();
  Check(Take() == std::vector<std::string>{"cudaFree"}, "nobody has it any more");
  FailOn("cudaMemcpy", 700);
  Check(Says(SaidBy([&] { copied(one, 64); }), "cudaMemcpy"), "an error is named");
  Check(Take() == std::vector<std::string>{make, copy, "cudaFree"}, "and leaves nothing");
  FailOn(arrived.c_str(), 700);
  Check(Says(SaidBy([&] { copied(one, 64); }), "cudaStreamSynchronize"), "nor where it is awaited");
  Check(Take() == std::vector<std::string>{make, copy, arrived, "cudaFree"}, "nothing is left");
  first = copied(one, 64);
  Check(first != nullptr && Take() == std::vector<std::string>{make, copy, arrived},
        "and it is made anew");
}

int Pinned() { return Find<int (*)()>("RecordingPinned")(); }

// Tensors that cross between the CPU and the GPU of one function: in the thread's stream, awaited
// on the way to the CPU alone; errors are named.
void CheckCopies() {
  const std::vector<int16_t> sent = {5, 6, 7, 8};
  std::vector<int16_t> back(4, 0);
  const int64_t bytes = 8;
  std::shared_ptr<char> there = mxplan::CudaMemory().Allocate(bytes);
  mxplan::SetStreamSource([](int) { return reinterpret_cast<mxplan::CudaStream>(64); });
  auto copy_in = [&] { mxplan::CopyToGpu(there.get(), sent.data(), bytes); };
  auto copy_out = [&] { mxplan::CopyToCpu(back.data(), there.get(), bytes); };
  Take();
  const std::string copy = "cudaMemcpyAsync 8 kind 1 stream 64", record = "record stream 64";
  copy_in();
  Check(Take() == std::vector<std::string>{"cudaHostAlloc 8", "event 2", copy, record}, "there");
  copy_in();
  Check(Take() == std::vector<std::string>{"query", copy, record}, "nothing is pinned again");
  copy_out();
  Check(Take() == std::vector<std::string>{"cudaMemcpyAsync 8 kind 2 stream 64",
                                           "cudaStreamSynchronize 64"},
        "back, and awaited");
  Check(back == sent, "what came back is not what went there");
  mxplan::CopyToGpu(there.get(), sent.data(), 0);
  mxplan::CopyToCpu(back.data(), there.get(), 0);
  Check(Take().empty(), "nothing to copy is no call");
  for (const char* call : {"cudaMemcpyAsync 8 kind 1", "cudaMemcpyAsync 8 kind 2",
                           "cudaStreamSynchronize", "cudaEventQuery", "cudaEventRecord"}) {
    const std::string noted = call, name = noted.substr(0, noted.find(' '));
    FailOn(name == "cudaEventQuery" ? "query" : name == "cudaEventRecord" ? "record" : call, 700);
    std::string said = SaidBy(copy_in) + SaidBy(copy_out);
    Check(Says(said, name + ": a CUDA error of the stand-in"), "unnamed: " + said);
    Check(!Find<int (*)()>("RecordingFailing")(), noted + " was not called");
    Check(SaidBy(copy_in).empty() && SaidBy(copy_out).empty(), "and the next ones work");
  }
  Set("devices", 0);
  Check(Says(SaidBy(copy_in), "no GPU is here"), SaidBy(copy_in));
  Set("devices", 1);
  mxplan::SetStreamSource([](int) { return mxplan::CudaStream{nullptr}; });
  Take();
}

// Pinned buffers of a thread: one more while the others are being read, none beyond the bound, all
// given back with the thread; without memory to pin a tensor goes from where it stands.
void CheckStaging() {
  constexpr int64_t kMost = mxplan::Staging::kMost;
  const int64_t third = kMost / 3;
  const std::vector<char> sent(static_cast<size_t>(kMost) + 1, 3);
  std::shared_ptr<char> there = mxplan::CudaMemory().Allocate(kMost + 1);
  const int before = Pinned();
  auto count = [&](const std::string& call) {
    int found = 0;
    for (const std::string& one : Take()) found += one.rfind(call, 0) == 0 ? 1 : 0;
    return found;
  };
  auto thread = [&] {
    mxplan::Staging staging;
    auto send = [&](int64_t bytes) { staging.Send(0, nullptr, there.get(), sent.data(), bytes); };
    Take();
    FailOn("cudaHostAlloc", 2);
    send(third);
    Check(Pinned() == before && count("cudaMemcpyAsync") == 1, "copied from where it stands");
    FailOn("event", 700);
    Check(Says(SaidBy([&] { send(third); }), "cudaEventCreateWithFlags"), "an event that fails");
    Check(Pinned() == before, "its buffer is given back");
    Set("copying", 1);
    for (int turn = 0; turn < 3; ++turn) send(third);
    Check(Pinned() == before + 6 && count("await") == 0, "one buffer for each copy at work");
    send(third);
    Check(Pinned() == before + 6 && count("await") == 1, "the bound is kept by waiting");
    send(kMost + 1);
    Check(Pinned() == before + 6 && count("cudaMemcpyAsync") == 1, "more than may be pinned");
    Set("copying", 0);
    for (int turn = 0; turn < 3; ++turn) send(third - turn);
    Check(Pinned() == before + 6 && count("cudaHostAlloc") == 0, "buffers that are free again");
    Check(std::all_of(there.get(), there.get() + third, [](char one) { return one == 3; }),
          "what was sent is there");
    staging.Send(1, nullptr, there.get(), sent.data(), third);
    Check(Pinned() == before + 2, "another device has buffers of its own");
  };
  std::thread(thread).join();
  Check(Pinned() == before, "all is given back");
  Take();
}

// A conversion of six axes: in one call where neighbours that keep their order leave five, else in
// one for each index along the shortest axis.
void CheckManyAxes() {
  const std::vector<int64_t> dims = {3, 2, 4, 3, 2, 5};
  auto check = [&](const std::string& order, int64_t calls) {
    mxplan::Program program;
    program.name = "r";
    for (int i = 0; i < 2; ++i) {
      mxplan::Value value;
      value.name = i == 0 ? "x" : "y";
      value.dtype = "float16";
      value.kind = i == 0 ? mxplan::ValueKind::kInput : mxplan::ValueKind::kOutput;
      value.layout = i == 0 ? "abcdef" : order;
      value.index = 0;
      for (int64_t extent : dims) value.shape.push_back(Number(extent));
      value.alias_offset = Number(0);
      program.roots.push_back(i);
      program.values.push_back(value);
    }
    program.inputs = {0};
    program.outputs = {1};
    Step step;
    step.kind = "reorder";
    step.name = "o";
    step.operands = {{"src", 0}, {"dst", 1}};
    program.steps = {step};
    mxplan::Region region(program, {}, mxplan::FindLibrary("cudnn"));
    constexpr int64_t kAll = 3 * 2 * 4 * 3 * 2 * 5;
    std::shared_ptr<char> x = mxplan::CudaMemory().Allocate(kAll * 2);
    std::shared_ptr<char> y = mxplan::CudaMemory().Allocate(kAll * 2);
    auto* from = reinterpret_cast<uint16_t*>(x.get());
    auto* to = reinterpret_cast<uint16_t*>(y.get());
    for (int64_t i = 0; i < kAll; ++i) from[i] = static_cast<uint16_t>(i);
    std::vector<int64_t> stored;
    for (char axis : order) stored.push_back(dims[static_cast<size_t>(axis - 'a')]);
    mxplan::TensorRef src, dst;
    src.data = x.get();
    dst.data = y.get();
    src.shape = dims.data();
    dst.shape = stored.data();
    src.rank = dst.rank = 6;
    src.dtype = dst.dtype = "float16";
    src.space = dst.space = mxplan::MemorySpace::Kind::kCuda;
    Take();
    region.Run({src, dst});
    std::vector<std::string> made = Take();
    Check(std::count(made.begin(), made.end(), "transform") == calls, order + ": " + Joined(made));
    int64_t wrong = 0;
    for (int64_t i = 0; i < kAll; ++i) {
      int64_t left = i, at = 0;
      for (size_t axis = 6; axis-- > 0; left /= stored[axis]) {
        const auto letter = static_cast<size_t>(order[axis] - 'a');
        int64_t step_of = 1;
        for (size_t inner = letter + 1; inner < 6; ++inner) step_of *= dims[inner];
        at += left % stored[axis] * step_of;
      }
      wrong += to[i] != from[at] ? 1 : 0;
    }
    Check(wrong == 0, mxplan::Concat(order, ": ", wrong, " elements are not where they belong"));
  };
  check("abcdef", 1);
  check("adbcef", 1);  // a pixel shuffle's: bc and ef stay together
  check("fabcde", 1);
  check("acebdf", 2);
  check("fedcba", 2);
}

// y = concat(x[:, 1:3], x), the box taken from x stored channels last.
mxplan::Program MakeMovement() {
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
  return program;
}

// The same where x stands in y already, and the box is copied from inside of x.
void CheckMovement() {
  mxplan::Program program = MakeMovement();
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
  mxplan::Value part = program.values[3];  // of y, so it comes behind it
  part.alias_of = 5;
  part.alias_offset = Number(2 * 20 * 2);
  program.values.push_back(part);
  program.roots.push_back(5);
  program.steps[0].operands = {{"src", 0}, {"dst", 6}};
  program.steps[1].operands = {{"src", 6}, {"dst", 4}};
  program.steps[2].operands = {{"src", 4}, {"src", 6}, {"dst", 5}};
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

// An error at the n-th call that can fail of a region of a box and a concatenation, which has no
// plan to spare: the step that failed is named with the library's words.
void CheckMovementErrors() {
  int before = Live(), calls = 0, named = 0;
  std::vector<ConstantData> constants = {Constant(weights, {7, 3, 1, 1}), Constant(bias, {7})};
  for (bool failed = true; failed; ++calls) {
    {
      mxplan::Region region(MakeMovement(), constants, mxplan::FindLibrary("cudnn"));
      Caller caller;
      auto run = [&] { caller.Run(&region, mxplan::MemorySpace::Kind::kCuda, 5); };
      FailAt(calls, 3);
      std::string said = SaidBy(run);
      failed = !Find<int (*)()>("RecordingFailing")();
      FailAt(-1, 0);
      Check(failed == !said.empty(), "an error got lost: " + Joined(Take()));
      Check(said.empty() || Says(said, "STAND_IN") || Says(said, "of the stand-in"),
            "without the library's words: " + said);
      named += Says(said, "slice box: cudnn") || Says(said, "concat both: cudnn") ? 1 : 0;
      std::string again = SaidBy(run);
      Check(again.empty(), mxplan::Concat("after a failure of call ", calls, ": ", again));
    }
    Check(Live() == before, mxplan::Concat("call ", calls, " left ", Live() - before));
    Take();
  }
  Check(named > 6, mxplan::Concat("only ", named, " errors name the box or the concatenation"));
}

}  // namespace

int main(int, char** arguments) {
  if (!Begin(arguments[1])) return 1;
  CheckSoftmax();
  CheckPools();
  CheckCopies();
  CheckRows();
  CheckSharedConstants();
  CheckStaging();
  CheckManyAxes();
  CheckMovement();
  CheckMovementErrors();
  return End();
}
