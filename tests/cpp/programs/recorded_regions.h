// Regions on a GPU and their callers, against a stand-in for CUDA and cuDNN (recording_cuda.cc).
#ifndef MXPLAN_TESTS_RECORDED_REGIONS_H_
#define MXPLAN_TESTS_RECORDED_REGIONS_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cudnn/api.h"
#include "cudnn/device.h"
#include "cudnn/plans/plan.h"
#include "library/library.h"
#include "region/region.h"

namespace recorded {

using mxplan::ConstantData;
using mxplan::Step;

inline int failures = 0;
inline void* stand_in = nullptr;

inline void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

template <typename F>
F Find(const char* name) {
  return reinterpret_cast<F>(dlsym(stand_in, name));
}
inline void FailAt(int call, int status) {
  Find<void (*)(int, int)>("RecordingFail")(call, status);
}
// The next call that begins so fails.
inline void FailOn(const char* call, int status) {
  Find<void (*)(const char*, int)>("RecordingFailOn")(call, status);
}
inline void Set(const char* what, int number) {
  Find<void (*)(const char*, int)>("RecordingSet")(what, number);
}
inline int Live() { return Find<int (*)()>("RecordingLive")(); }
// The error that whoever checks a kernel of its own would find.
inline int LastError() { return Find<int (*)()>("RecordingLastError")(); }
inline int Handles() { return Find<int (*)()>("RecordingHandles")(); }
inline std::vector<std::string> Take() {
  std::vector<std::string> calls;
  std::string text = Find<const char* (*)()>("RecordingTake")();
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    calls.push_back(text.substr(at, end - at));
  }
  return calls;
}

inline std::string Joined(const std::vector<std::string>& calls) {
  std::string text;
  for (const std::string& call : calls) text += call + "; ";
  return text;
}

inline void Append(std::string* bytes, int64_t number, size_t size) {
  bytes->append(reinterpret_cast<const char*>(&number), size);
}
inline void AppendText(std::string* bytes, const std::string& text) {
  Append(bytes, static_cast<int64_t>(text.size()), 4);
  *bytes += text;
}

struct Spare {
  std::string engine;
  int64_t workspace;
  std::vector<int64_t> uids;
};

using Scalars = std::vector<std::pair<int64_t, std::string>>;

inline void AppendPlan(std::string* body, const Spare& plan, const Scalars& scalars = {}) {
  Append(body, plan.workspace, 8);
  AppendText(body, plan.engine);
  Append(body, static_cast<int64_t>(plan.uids.size()), 4);
  for (int64_t uid : plan.uids) Append(body, uid, 8);
  Append(body, static_cast<int64_t>(scalars.size()), 4);
  for (const auto& [uid, number] : scalars) {
    Append(body, uid, 8);
    AppendText(body, number);
  }
  AppendText(body, "{\"engine\":\"" + plan.engine + "\"}");
}

// Plans of the convolution below: dst, src, weights, bias and the workspace; then those that stand
// by.
inline std::string Record(int64_t workspace = 256, std::vector<int64_t> uids = {4, 1, 2, 3},
                          const Scalars& scalars = {}, const std::vector<Spare>& spares = {},
                          bool replays = false) {
  std::string body;
  for (int64_t number : {int64_t{91900}, int64_t{90}, int64_t{132}, int64_t{13000}}) {
    Append(&body, number, 8);
  }
  Append(&body, replays ? 1 : 0, 4);
  Append(&body, static_cast<int64_t>(1 + spares.size()), 4);
  AppendPlan(&body, {"eng7", workspace, std::move(uids)}, scalars);
  for (const Spare& spare : spares) AppendPlan(&body, spare);
  std::string bytes = "MXEP";
  Append(&bytes, 4, 4);
  return bytes + mxplan::DigestOfPlan(body) + body;
}

inline mxplan::DimExpr Number(int64_t number) {
  return {{mxplan::DimNode::Code::kConstant, number}};
}

constexpr int64_t kIn = 2 * 3 * 4 * 5, kOut = 2 * 7 * 4 * 5;

// y = convolution(x, w) + b, channels last inside, in float16.
inline mxplan::Program MakeProgram(const std::string& prepared) {
  mxplan::Program program;
  program.name = "r";
  auto add = [&](const char* name, mxplan::ValueKind kind, int64_t index, const char* layout,
                 const std::vector<int64_t>& shape) {
    mxplan::Value value;
    value.name = name;
    value.dtype = "float16";
    value.kind = kind;
    value.layout = layout;
    value.index = index;
    for (int64_t extent : shape) value.shape.push_back(Number(extent));
    value.alias_offset = Number(0);
    program.roots.push_back(static_cast<int>(program.values.size()));
    program.values.push_back(value);
  };
  add("x", mxplan::ValueKind::kInput, 0, "abcd", {2, 3, 4, 5});
  add("w", mxplan::ValueKind::kConstant, 0, "acdb", {7, 3, 1, 1});
  add("b", mxplan::ValueKind::kConstant, 1, "a", {7});
  add("h", mxplan::ValueKind::kLocal, -1, "acdb", {2, 3, 4, 5});
  add("t", mxplan::ValueKind::kLocal, -1, "acdb", {2, 7, 4, 5});
  add("y", mxplan::ValueKind::kOutput, 0, "abcd", {2, 7, 4, 5});
  program.inputs = {0};
  program.constants = {1, 2};
  program.outputs = {5};
  Step before, product, after;
  before.kind = after.kind = "reorder";
  before.name = "in";
  before.operands = {{"src", 0}, {"dst", 3}};
  product.kind = "convolution";
  product.name = "c";
  product.operands = {{"src", 3}, {"weights", 1}, {"bias", 2}, {"dst", 4}};
  product.attributes = {
      {"strides", std::vector<int64_t>{1, 1}},  {"padding", std::vector<int64_t>{0, 0, 0, 0}},
      {"dilation", std::vector<int64_t>{1, 1}}, {"groups", int64_t{1}},
      {"algorithm", std::string("direct")},     {"preferred", std::string()}};
  product.prepared = prepared;
  after.name = "out";
  after.operands = {{"src", 4}, {"dst", 5}};
  program.steps = {before, product, after};
  return program;
}

inline ConstantData Constant(const std::vector<int16_t>& numbers, std::vector<int64_t> shape) {
  ConstantData constant;
  constant.dtype = "float16";
  constant.shape = std::move(shape);
  constant.bytes = constant.stored_bytes = static_cast<int64_t>(numbers.size()) * 2;
  constant.data = reinterpret_cast<const char*>(numbers.data());
  return constant;
}

inline const std::vector<int16_t> weights(21, 1), bias(7, 2);

inline std::unique_ptr<mxplan::Region> MakeRegion(const std::string& prepared) {
  std::vector<ConstantData> constants = {Constant(weights, {7, 3, 1, 1}), Constant(bias, {7})};
  return std::make_unique<mxplan::Region>(MakeProgram(prepared), constants,
                                          mxplan::FindLibrary("cudnn"));
}

// Memory of the "device" for one caller.
struct Caller {
  std::shared_ptr<char> x = mxplan::CudaMemory().Allocate(kIn * 2);
  std::shared_ptr<char> y = mxplan::CudaMemory().Allocate(kOut * 2);

  void Run(mxplan::Region* region,
           mxplan::MemorySpace::Kind space = mxplan::MemorySpace::Kind::kCuda, int64_t channels = 7,
           int64_t images = 2, int device = 0) const {
    const int64_t in[] = {images, 3, 4, 5}, out[] = {images, channels, 4, 5};
    mxplan::TensorRef src, dst;
    src.data = x.get();
    dst.data = y.get();
    src.shape = in;
    dst.shape = out;
    src.rank = dst.rank = 4;
    src.dtype = dst.dtype = "float16";
    src.space = dst.space = space;
    src.device = dst.device = device;
    region->Run({src, dst});
  }
};

// Whatever failed, no error is left for others.
inline std::string SaidBy(const std::function<void()>& action) {
  std::string said;
  try {
    action();
  } catch (const mxplan::Error& error) {
    said = error.what();
  }
  Check(LastError() == 0, mxplan::Concat("an error is left for others: ", LastError()));
  return said;
}

inline bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Loads the stand-in; false where it cannot.
inline bool Begin(const char* path) {
  stand_in = dlopen(path, RTLD_NOW);
  if (stand_in == nullptr) {
    std::printf("FAILED: %s\n", dlerror());
    return false;
  }
  mxplan::SetCudaLibraries(path, path);
  return true;
}

// The program's status: 1 where a check failed, or something was not given back.
inline int End() {
  Check(Live() == 0, mxplan::Concat("in the end there is left ", Live()));
  Check(LastError() == 0, mxplan::Concat("an error is left for others: ", LastError()));
  if (failures == 0) std::printf("all checks hold\n");
  return failures == 0 ? 0 : 1;
}

}  // namespace recorded

#endif  // MXPLAN_TESTS_RECORDED_REGIONS_H_
