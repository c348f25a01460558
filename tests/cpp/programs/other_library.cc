// A library of plain C++ in a runtime that has no other: regions run by what any library
// implements.
//
// Linked without oneDNN.  The library stores images in blocks of five, which no other knows, packs
// weights by transposing them, and works on a stream: stages only queue their work, as on a device.
// Prints a line for each check that failed; the status is 1 if there was one.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "debug/memory_debug.h"
#include "debug/observer.h"
#include "library/library.h"
#include "program/step_attributes.h"
#include "region/describe.h"
#include "region/region.h"
#include "weights/container.h"

namespace {

using mxplan::Argument;
using mxplan::ConstantData;
using mxplan::Dims;
using mxplan::Executable;
using mxplan::PhysicalLayout;
using mxplan::Resolved;
using mxplan::Step;

constexpr int64_t kBlock = 5;
int failures = 0;

void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

// Work that waits until somebody waits for it.
class Queue final : public mxplan::Stream {
 public:
  void Add(std::function<void()> work) { work_.push_back(std::move(work)); }
  void Wait() override {
    for (; !work_.empty(); work_.pop_front()) work_.front()();
  }

 private:
  std::deque<std::function<void()>> work_;
};

using Kernel = std::function<void(const std::vector<char*>& addresses)>;
int addresses_set = 0;

class HostCall final : public mxplan::StageCall {
 public:
  HostCall(const Kernel& kernel, size_t arguments) : kernel_(kernel), addresses_(arguments) {}
  void SetAddress(size_t argument, void* address) override {
    addresses_[argument] = static_cast<char*>(address);
    ++addresses_set;
  }
  void Run(mxplan::Stream* stream) override {
    static_cast<Queue*>(stream)->Add([this] { kernel_(addresses_); });
  }

 private:
  const Kernel& kernel_;
  std::vector<char*> addresses_;
};

class HostStage final : public mxplan::Stage {
 public:
  HostStage(std::vector<Argument> arguments, Kernel kernel)
      : Stage(std::move(arguments)), kernel_(std::move(kernel)) {}
  std::unique_ptr<mxplan::StageCall> NewCall() const override {
    return std::make_unique<HostCall>(kernel_, arguments().size());
  }

 private:
  Kernel kernel_;
};

void Transpose(const float* src, int64_t rows, int64_t columns, float* dst) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) dst[j * rows + i] = src[i * columns + j];
  }
}

// A matrix of [rows, columns], transposed.
class Transposed final : public mxplan::Form {
 public:
  Transposed(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}
  int64_t source_bytes() const override { return bytes(); }
  int64_t bytes() const override { return rows_ * columns_ * 4; }
  bool Equals(const Form& other) const override { return Name() == other.Name(); }
  std::string Name() const override { return mxplan::Concat("transposed ", rows_, "x", columns_); }
  bool IsPlain() const override { return false; }
  bool IsStored(const ConstantData& constant) const override {
    return constant.form.packed == "ba" && constant.form.dims == Dims{rows_, columns_};
  }
  mxplan::StoredForm AsStored() const override { return {{rows_, columns_}, "ab", "ba"}; }
  void Pack(const char* plain, bool, char* packed, mxplan::PackingScratch*) const override {
    Transpose(reinterpret_cast<const float*>(plain), rows_, columns_,
              reinterpret_cast<float*>(packed));
  }

 private:
  int64_t rows_, columns_;
};

float* Floats(char* data) { return reinterpret_cast<float*>(data); }

// [rows, channels] stands in blocks of kBlock channels: a channel's place in its row's blocks.
int64_t PlaceOf(int64_t row, int64_t channel, int64_t channels) {
  int64_t blocks = (channels + kBlock - 1) / kBlock;
  return (row * blocks + channel / kBlock) * kBlock + channel % kBlock;
}

class HostBuilder final : public mxplan::Builder {
 public:
  explicit HostBuilder(Resolved* resolved) : Builder(resolved), resolved_(*resolved) {}

 private:
  const Dims& Shape(const Step& step, const char* role) const {
    return resolved_.values[static_cast<size_t>(step.Find(role))].dims;
  }

  Executable Make(const Step& step, bool) override {
    Executable made;
    made.implementation = "host_" + step.kind;
    Argument src{Argument::Source::kValue, step.Find("src")};
    Argument dst{Argument::Source::kValue, step.Find("dst")};
    if (step.kind == "matmul") {
      const Dims shape = Shape(step, "src"), weights = Shape(step, "weights");
      auto form = std::make_shared<const Transposed>(weights[0], weights[1]);
      Argument packed{Argument::Source::kPacked, step.Find("weights"), 0, form};
      Argument scratchpad{Argument::Source::kScratchpad};
      made.scratchpad_bytes = shape[1] * 4;
      auto kernel = [shape, columns = weights[1]](const std::vector<char*>& at) {
        for (int64_t i = 0; i < shape[0]; ++i) {
          // By way of the scratchpad, so that it has to be there.
          std::memcpy(at[3], at[0] + i * shape[1] * 4, static_cast<size_t>(shape[1]) * 4);
          for (int64_t j = 0; j < columns; ++j) {
            float sum = 0;
            for (int64_t k = 0; k < shape[1]; ++k) {
              sum += Floats(at[3])[k] * Floats(at[1])[j * shape[1] + k];
            }
            Floats(at[2])[PlaceOf(i, j, columns)] = sum;
          }
          for (int64_t j = columns; j % kBlock != 0; ++j) {
            Floats(at[2])[PlaceOf(i, j, columns)] = 0;
          }
        }
      };
      made.stages.push_back(
          std::make_unique<HostStage>(std::vector<Argument>{src, packed, dst, scratchpad}, kernel));
    } else if (step.kind == "reorder") {
      const Dims shape = Shape(step, "src");
      auto kernel = [shape](const std::vector<char*>& at) {
        for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
          int64_t from = PlaceOf(i / shape[1], i % shape[1], shape[1]);
          Floats(at[1])[i] = Floats(at[0])[from];
        }
      };
      made.stages.push_back(std::make_unique<HostStage>(std::vector<Argument>{src, dst}, kernel));
    } else {
      mxplan::ThrowUnsupported("host has no ", step.kind);
    }
    return made;
  }

  const Resolved& resolved_;
};

class Host final : public mxplan::Library {
 public:
  const char* name() const override { return "host"; }
  const char* title() const override { return "Host"; }
  mxplan::ProcessState State() const override { return {}; }
  mxplan::Stream* ThreadStream() const override {
    thread_local Queue queue;
    return &queue;
  }
  PhysicalLayout LayoutOf(const Dims& dims, const std::string& dtype,
                          const std::string& tag) const override {
    if (dtype != "float32") mxplan::ThrowUnsupported("type ", dtype);
    if (dims.size() != 2) mxplan::ThrowUnsupported("rank ", dims.size());
    PhysicalLayout layout;
    layout.element_bytes = 4;
    layout.padded = dims;
    if (tag == "aB5b") {
      layout.padded[1] = (dims[1] + kBlock - 1) / kBlock * kBlock;
      layout.strides = {layout.padded[1], kBlock};
      layout.blocks = {kBlock};
      layout.block_axes = {1};
    } else if (tag == "ab") {
      layout.strides = {dims[1], 1};
    } else {
      mxplan::ThrowUnsupported("layout ", tag);
    }
    layout.bytes = layout.padded[0] * layout.padded[1] * 4;
    return layout;
  }
  std::unique_ptr<mxplan::Builder> NewBuilder(Resolved* resolved) const override {
    return std::make_unique<HostBuilder>(resolved);
  }
  void CheckForm(const ConstantData& constant) const override {
    if (constant.form.packed != "ba") mxplan::ThrowInvalidInput("form ", constant.form.packed);
  }
  void Unpack(const ConstantData& constant, char* plain) const override {
    const Dims& dims = constant.form.dims;
    Transpose(reinterpret_cast<const float*>(constant.data), dims[1], dims[0], Floats(plain));
  }
};

const bool registered = [] {
  mxplan::RegisterLibrary(*new Host());
  return true;
}();

constexpr int64_t kDepth = 7, kColumns = 13;

mxplan::DimExpr Number(int64_t number) { return {{mxplan::DimNode::Code::kConstant, number}}; }

// y[n, 13] = x[n, 7] w[7, 13], by way of a local in blocks; `n` is a symbol or 3.
mxplan::Program MakeProgram(bool symbolic) {
  mxplan::Program program;
  program.name = "r";
  mxplan::DimExpr n = Number(3);
  if (symbolic) {
    n = {{mxplan::DimNode::Code::kSymbol, 0}};
    program.symbols.push_back({"n", 0, 0});
  }
  auto add = [&](const char* name, mxplan::ValueKind kind, const char* layout,
                 std::vector<mxplan::DimExpr> shape) {
    mxplan::Value value;
    value.name = name;
    value.dtype = "float32";
    value.kind = kind;
    value.layout = layout;
    value.index = kind == mxplan::ValueKind::kLocal ? -1 : 0;
    value.shape = std::move(shape);
    program.roots.push_back(static_cast<int>(program.values.size()));
    program.values.push_back(value);
  };
  add("x", mxplan::ValueKind::kInput, "ab", {n, Number(kDepth)});
  add("w", mxplan::ValueKind::kConstant, "ab", {Number(kDepth), Number(kColumns)});
  add("h", mxplan::ValueKind::kLocal, "aB5b", {n, Number(kColumns)});
  add("y", mxplan::ValueKind::kOutput, "ab", {n, Number(kColumns)});
  program.inputs = {0};
  program.constants = {1};
  program.outputs = {3};
  Step product;
  product.kind = "matmul";
  product.name = "product";
  product.operands = {{"src", 0}, {"weights", 1}, {"dst", 2}};
  Step reorder;
  reorder.kind = "reorder";
  reorder.name = "back";
  reorder.operands = {{"src", 2}, {"dst", 3}};
  program.steps = {product, reorder};
  return program;
}

std::vector<float> Random(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = normal(random);
  return numbers;
}

ConstantData Constant(const std::vector<float>& numbers) {
  ConstantData constant;
  constant.dtype = "float32";
  constant.shape = {kDepth, kColumns};
  constant.bytes = constant.stored_bytes = static_cast<int64_t>(numbers.size()) * 4;
  constant.data = reinterpret_cast<const char*>(numbers.data());
  return constant;
}

void CheckRun(mxplan::Region* region, const std::vector<float>& weights, int64_t n,
              const std::string& how) {
  std::vector<float> x = Random(n * kDepth, static_cast<unsigned>(n));
  std::vector<float> y(static_cast<size_t>(n * kColumns), -1.0f);
  const int64_t in[] = {n, kDepth}, out[] = {n, kColumns};
  mxplan::TensorRef src, dst;
  src.data = x.data();
  src.shape = in;
  dst.data = y.data();
  dst.shape = out;
  src.rank = dst.rank = 2;
  src.dtype = dst.dtype = "float32";
  region->Run({src, dst});
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        sum += static_cast<double>(x[i * kDepth + k]) * weights[k * kColumns + j];
      }
      worst = std::max(worst, std::abs(sum - y[i * kColumns + j]));
    }
  }
  Check(worst < 1e-5, mxplan::Concat(how, ": off by ", worst, " at n = ", n));
}

class Counter final : public mxplan::Observer {
 public:
  void Begin(const std::vector<int64_t>& symbols) override { n = symbols.at(0); }
  void Before(size_t, const std::vector<Seen>&) override {}
  void After(size_t, const std::vector<Seen>& results) override {
    for (const Seen& dst : results) bytes += dst.bytes.end - dst.bytes.begin;
  }
  int64_t n = 0, bytes = 0;
};

}  // namespace

int main() {
  const mxplan::Library& host = mxplan::FindLibrary("host");
  const std::vector<float> weights = Random(kDepth * kColumns, 42);
  mxplan::Region region(MakeProgram(true), {Constant(weights)}, host);
  for (int64_t n : {1, 4, 2, 4}) CheckRun(&region, weights, n, "plain");

  // A warm call sets the addresses of inputs and outputs and no others.
  addresses_set = 0;
  CheckRun(&region, weights, 2, "warm");
  Check(addresses_set == 2, mxplan::Concat("a warm call set ", addresses_set, " addresses"));

  auto counter = std::make_shared<Counter>();
  mxplan::SetThreadObserver(counter);
  mxplan::SetMemoryDebug(true);
  CheckRun(&region, weights, 4, "watched");
  mxplan::SetMemoryDebug(false);
  mxplan::SetThreadObserver(nullptr);
  Check(counter->n == 4, "the observer saw no run");
  Check(counter->bytes == 4 * (15 + kColumns) * 4, "the observer saw other bytes");

  // Exported with weights in the form the library wants, and loaded again.
  mxplan::Region fixed(MakeProgram(false), {Constant(weights)}, host);
  CheckRun(&fixed, weights, 3, "static");
  std::vector<ConstantData> packed = fixed.PackedConstants();
  Check(packed.size() == 1 && packed[0].form.packed == "ba", "the weights were not packed");
  std::string saved = mxplan::Save("r", "", packed);
  mxplan::Container container = mxplan::Load(saved, nullptr, host);
  mxplan::Region loaded(MakeProgram(false), container.constants, host);
  CheckRun(&loaded, weights, 3, "packed");
  std::vector<ConstantData> plain = loaded.PlainConstants();
  Check(std::memcmp(plain.at(0).data, weights.data(), weights.size() * 4) == 0,
        "the plain weights did not come back");

  mxplan::Program unknown = MakeProgram(false);
  unknown.steps[1].kind = "eltwise";
  std::string said;
  try {
    mxplan::Region(unknown, {Constant(weights)}, host).Prepare();
  } catch (const mxplan::Error& error) {
    said = error.what();
  }
  Check(said == "region r: eltwise back: host has no eltwise", "said: " + said);
  std::string described = mxplan::Describe(MakeProgram(false), host, {});
  Check(described.find("\"implementation\":\"host_matmul\"") != std::string::npos, described);
  Check(described.find("{\"layout\":\"aB5b\",\"nbytes\":180}") != std::string::npos, described);
  if (failures == 0) std::printf("all checks hold\n");
  return failures == 0 ? 0 : 1;
}
