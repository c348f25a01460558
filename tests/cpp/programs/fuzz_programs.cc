// Changes sound region programs and runs what is still taken: no step may touch foreign memory.
//
//     fuzz_programs SECONDS|ROUNDSx SEED FILE...
//
// Each FILE holds a sound container.  A change knows the structure (extents, types, layouts, roles,
// attributes, post-ops, aliases, offsets), so that many changed programs are still decoded.  They
// are then made into regions and run under the watch of memory_debug.h, on inputs, outputs and
// constants that end where a page without access begins: the sanitizer sees what this runtime does,
// the pages and the watch what oneDNN's kernels do.  SEED and the number of a round give the round.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "debug/memory_debug.h"
#include "encode_program.h"
#include "fuzz_budget.h"
#include "library/library.h"
#include "read_file.h"
#include "region/describe.h"
#include "region/libraries.h"
#include "region/region.h"
#include "weights/container.h"

namespace {

using mxplan::Program;
using mxplan::Step;
using mxplan::Value;

constexpr int64_t kMostBytes = int64_t{4} << 20;  // of all values together; more is not run

int64_t Wrapped(uint64_t number) { return static_cast<int64_t>(number); }

class Random {
 public:
  // With tame numbers a program that is as it should be runs: all indices are in bounds.
  explicit Random(uint64_t seed, bool tame = false) : engine_(seed), tame_(tame) {}
  bool tame() const { return tame_; }
  bool Wild() { return !tame_ && Below(8) == 0; }
  size_t Below(size_t limit) { return engine_() % limit; }
  template <typename T>
  T& Pick(std::vector<T>& from) {
    return from[Below(from.size())];
  }
  // Small numbers, neighbours of what was there, and the ends of the types.
  int64_t Number(int64_t old) {
    constexpr int64_t kEnds[] = {0, 1, -1, INT32_MAX, int64_t{INT32_MAX} + 1, INT64_MAX, INT64_MIN};
    switch (Below(4)) {
      case 0:
        return Wrapped(static_cast<uint64_t>(old) + Below(5) - 2);
      case 1:
        return static_cast<int64_t>(Below(20));
      case 2:
        return Below(2) ? Wrapped(static_cast<uint64_t>(old) * 2) : old / 2;
      default:
        return kEnds[Below(std::size(kEnds))];
    }
  }

 private:
  std::mt19937_64 engine_;
  bool tame_;
};

void ChangeDim(mxplan::DimExpr* dim, Random* random) {
  for (mxplan::DimNode& node : *dim) {
    if (node.code == mxplan::DimNode::Code::kConstant) node.number = random->Number(node.number);
  }
}

void ChangeValue(Program* program, Random* random) {
  static std::vector<std::string> types = {"float32",  "int8",  "uint8", "int32",
                                           "bfloat16", "int64", "bool",  "float64"};
  static std::vector<std::string> layouts = {
      "a",     "ab",    "ba",       "abc",   "abcd",  "acdb", "aBcd16b", "aBcd8b",
      "abcde", "acdeb", "aBcde16b", "aB16b", "Ab16a", "any",  "cdba",    "aBcd12b"};
  Value& value = random->Pick(program->values);
  switch (random->Below(9)) {
    case 0:
    case 1:
    case 2:
      if (!value.shape.empty()) ChangeDim(&random->Pick(value.shape), random);
      break;
    case 3:
      value.dtype = random->Pick(types);
      break;
    case 4:
      value.layout = random->Pick(layouts);
      break;
    case 5:
      value.alias_of = static_cast<int64_t>(random->Below(program->values.size() + 2)) - 1;
      if (random->Below(2)) value.kind = mxplan::ValueKind::kLocal;
      break;
    case 6:
      ChangeDim(&value.alias_offset, random);
      break;
    case 7:
      value.state = static_cast<int64_t>(random->Below(3)) - 1;
      break;
    case 8:
      value.offset =
          random->Below(2)
              ? Wrapped(static_cast<uint64_t>(value.offset) + 64 * (random->Below(5) - 2))
              : random->Number(value.offset);
      break;
    default:
      if (random->Below(2) && !value.shape.empty()) {
        value.shape.pop_back();
      } else {
        value.shape.push_back({{mxplan::DimNode::Code::kConstant, 1}});
      }
  }
}

// A change that keeps many programs sound: one extent, wherever it occurs.
void ChangeExtentEverywhere(Program* program, Random* random) {
  Value& value = random->Pick(program->values);
  if (value.shape.empty()) return;
  const mxplan::DimExpr& dim = random->Pick(value.shape);
  if (dim.size() != 1 || dim[0].code != mxplan::DimNode::Code::kConstant) return;
  int64_t old = dim[0].number, now = static_cast<int64_t>(random->Below(40));
  for (Value& other : program->values) {
    for (mxplan::DimExpr& one : other.shape) {
      for (mxplan::DimNode& node : one) {
        if (node.code == mxplan::DimNode::Code::kConstant && node.number == old) node.number = now;
      }
    }
  }
}

void ChangeAttribute(Step* step, Random* random) {
  if (step->attributes.empty()) return;
  auto at = std::next(step->attributes.begin(),
                      static_cast<std::ptrdiff_t>(random->Below(step->attributes.size())));
  mxplan::Attribute& attribute = at->second;
  if (auto* number = std::get_if<int64_t>(&attribute)) {
    *number = random->Number(*number);
  } else if (auto* real = std::get_if<double>(&attribute)) {
    *real = *real * 3 - 1;
  } else if (auto* list = std::get_if<std::vector<int64_t>>(&attribute)) {
    if (list->empty() || random->Below(8) == 0) {
      list->push_back(1);
    } else {
      int64_t& entry = random->Pick(*list);
      entry = random->Number(entry);
    }
  } else if (auto* text = std::get_if<std::string>(&attribute)) {
    static std::vector<std::string> words = {"direct",
                                             "winograd_f2",
                                             "winograd_f4",
                                             "max",
                                             "avg_include_padding",
                                             "relu",
                                             "linear",
                                             "softmax",
                                             "add",
                                             "mul",
                                             "sum",
                                             "mean",
                                             "nearest",
                                             "exp",
                                             "clip_v2",
                                             "sqrt",
                                             "less_equal",
                                             "not_equal",
                                             "div",
                                             "cubic",
                                             "half_pixel",
                                             "align_corners",
                                             "round_prefer_ceil",
                                             "jit:avx512_core",
                                             ""};
    *text = random->Pick(words);
  } else {
    attribute = !std::get<bool>(attribute);
  }
}

void ChangePostOps(Program* program, Step* step, Random* random) {
  mxplan::PostOp op;
  switch (random->Below(5)) {
    case 0:
      op.algorithm = "relu";
      break;
    case 1:
      op.kind = mxplan::PostOp::Kind::kBinary;
      op.algorithm = "add";
      op.value = static_cast<int>(random->Below(program->values.size()));
      break;
    case 2:
      op.kind = mxplan::PostOp::Kind::kSum;
      op.alpha = 1;
      break;
    case 3:
      op.kind = mxplan::PostOp::Kind::kDepthwise;
      op.kernel = 3, op.stride = 1 + static_cast<int64_t>(random->Below(2)), op.padding = 1;
      break;
    default:
      if (!step->post_ops.empty()) step->post_ops.pop_back();
      return;
  }
  step->post_ops.push_back(op);
}

void ChangeStep(Program* program, Random* random) {
  if (program->steps.empty()) return;
  Step& step = random->Pick(program->steps);
  static std::vector<std::string> roles = {
      "src",       "src1",          "weights",   "bias",           "scale",         "mean",
      "shift",     "dst",           "variance",  "depthwise_bias", "indices",       "condition",
      "src_scale", "weights_scale", "dst_scale", "src_zero_point", "dst_zero_point"};
  static std::vector<std::string> libraries = {"", "host", "onednn", "nobody"};
  switch (random->Below(10)) {
    case 0:
    case 1:
    case 2:
      return ChangeAttribute(&step, random);
    case 3:
    case 4:
      if (step.operands.empty()) return;
      random->Pick(step.operands).value = static_cast<int>(random->Below(program->values.size()));
      return;
    case 5:
      step.operands.push_back(
          {random->Pick(roles), static_cast<int>(random->Below(program->values.size()))});
      return;
    case 6:
      return ChangePostOps(program, &step, random);
    case 7:
      step.library = random->Pick(libraries);
      return;
    case 8:
      step.scratchpad_offset = random->Number(step.scratchpad_offset) / 64 * 64;
      return;
    default:
      if (random->Below(2)) {
        std::swap(step, random->Pick(program->steps));
      } else if (step.operands.size() > 1) {
        step.operands.erase(step.operands.begin() +
                            static_cast<std::ptrdiff_t>(random->Below(step.operands.size())));
      }
  }
}

Program Changed(Program program, Random* random) {
  for (size_t i = random->Below(3) + 1; i-- > 0;) {
    switch (random->Below(5)) {
      case 0:
        ChangeExtentEverywhere(&program, random);
        break;
      case 1:
      case 2:
        ChangeValue(&program, random);
        break;
      default:
        ChangeStep(&program, random);
    }
  }
  if (random->Below(16) == 0) program.arena_bytes = random->Number(program.arena_bytes);
  return program;
}

// Bytes that end where a page begins that nobody may touch.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    whole_ = (bytes_ + page - 1) / page * page + page;
    begin_ = static_cast<char*>(
        mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(begin_ + whole_ - page, page, PROT_NONE);
    data_ = begin_ + whole_ - page - bytes_;
    std::memset(begin_, kCanary, static_cast<size_t>(data_ - begin_));
  }
  ~Guarded() { munmap(begin_, whole_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Whether nothing was written before the first byte.
  bool IsWhole() const {
    for (const char* at = begin_; at < data_; ++at) {
      if (*at != kCanary) return false;
    }
    return true;
  }

 private:
  static constexpr char kCanary = 0x5A;
  size_t bytes_, whole_ = 0;
  char *begin_ = nullptr, *data_ = nullptr;
};

using Block = std::shared_ptr<Guarded>;

template <typename T, typename Draw>
void Fill(Guarded* block, Draw draw) {
  for (size_t i = 0; i + sizeof(T) <= block->bytes(); i += sizeof(T)) {
    const T number = static_cast<T>(draw());
    std::memcpy(block->data() + i, &number, sizeof(T));
  }
}

// Numbers between -1 and 1; integers of a few units, such as an index may have, and rarely others;
// or zeros, which are right in tails too.
Block Filled(int64_t bytes, bool zeros, const std::string& dtype, Random* random) {
  auto block = std::make_shared<Guarded>(bytes);
  std::memset(block->data(), 0, block->bytes());
  if (zeros) return block;
  auto real = [random] { return static_cast<double>(random->Below(2000)) / 1000 - 1; };
  const bool wild = random->Wild();
  const int64_t least = random->tame() ? 0 : -2;  // a count is not below 0
  auto whole = [random, wild, least]() -> int64_t {
    if (wild && random->Below(4) == 0) return random->Number(7);
    return static_cast<int64_t>(random->Below(static_cast<uint64_t>(4 - least))) + least;
  };
  Guarded* to = block.get();
  if (dtype == "float32") Fill<float>(to, real);
  if (dtype == "float64") Fill<double>(to, real);
  if (dtype == "int64") Fill<int64_t>(to, whole);
  if (dtype == "int32") Fill<int32_t>(to, whole);
  if (dtype == "int8" || dtype == "uint8")
    Fill<uint8_t>(to, [random] { return random->Below(256); });
  if (dtype == "bool") Fill<uint8_t>(to, [random] { return random->Below(2); });
  if (dtype == "bfloat16") Fill<uint16_t>(to, [random] { return 0x3F00 + random->Below(256); });
  return block;
}

enum class Outcome { kRefused, kTooLarge, kRan };

struct Finding : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Outcome RunProgram(const std::string& bytes, Random* random) {
  Program program = mxplan::Decode(bytes);
  std::vector<int64_t> symbols(program.symbols.size(), 2);
  const mxplan::Libraries libraries(program, mxplan::FindLibrary("onednn"));
  mxplan::Resolved resolved = mxplan::Resolve(program, symbols, libraries);
  mxplan::CheckPlaceable(resolved);
  int64_t total = 0;
  for (const mxplan::ResolvedValue& value : resolved.values) {
    if (value.Bytes() > kMostBytes) return Outcome::kTooLarge;
    total += value.Bytes();
  }
  if (total > kMostBytes || program.arena_bytes > 8 * kMostBytes) return Outcome::kTooLarge;
  std::vector<mxplan::ConstantData> constants;
  std::vector<Block> blocks;
  for (int id : program.constants) {
    const Value& value = program.values[static_cast<size_t>(id)];
    const mxplan::ResolvedValue& shape = resolved.values[static_cast<size_t>(id)];
    bool blocked = !shape.layout.blocks.empty();
    blocks.push_back(Filled(shape.Bytes(), blocked, value.dtype, random));
    mxplan::ConstantData constant;
    constant.dtype = value.dtype;
    constant.shape = shape.dims;
    constant.bytes = constant.stored_bytes = shape.Bytes();
    constant.data = blocks.back()->data();
    constant.owner = blocks.back();
    constants.push_back(std::move(constant));
  }
  std::vector<int> ports = program.inputs;
  ports.insert(ports.end(), program.outputs.begin(), program.outputs.end());
  std::vector<mxplan::Dims> shapes = mxplan::PhysicalShapesOf(resolved);
  std::vector<mxplan::TensorRef> tensors;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& value = program.values[static_cast<size_t>(ports[i])];
    const mxplan::ResolvedValue& shape = resolved.values[static_cast<size_t>(ports[i])];
    bool zeros = i >= program.inputs.size() || !shape.layout.blocks.empty();
    blocks.push_back(Filled(shape.Bytes(), zeros, value.dtype, random));
    mxplan::TensorRef ref;
    ref.data = blocks.back()->data();
    ref.shape = shapes[i].data();
    ref.rank = static_cast<int>(shapes[i].size());
    ref.dtype = value.dtype.c_str();
    tensors.push_back(ref);
  }
  mxplan::Region region(program, constants, mxplan::FindLibrary("onednn"));
  region.Run(tensors);
  for (const Block& block : blocks) {
    if (!block->IsWhole()) throw Finding("bytes before a tensor were written");
  }
  return Outcome::kRan;
}

bool Mentions(const std::exception& error, const char* text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

Outcome Try(const std::string& bytes, Random* random) {
  try {
    return RunProgram(bytes, random);
  } catch (const mxplan::Error& error) {
    // A view may cut a block, which leaves what it holds in the tail: wrong numbers, no wrong
    // bytes.
    bool ours = error.kind() == mxplan::ErrorKind::kInternal;
    if (ours && !Mentions(error, "in the padding of its layout") && !Mentions(error, "oneDNN")) {
      throw Finding(error.what());
    }
  } catch (const std::bad_alloc&) {
  }
  return Outcome::kRefused;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: fuzz_programs SECONDS|ROUNDSx SEED FILE...\n");
    return 2;
  }
  const Budget budget(argv[1]);
  const auto seed = static_cast<uint64_t>(std::atoll(argv[2]));
  std::vector<Program> programs;
  for (int i = 3; i < argc; ++i) {
    programs.push_back(mxplan::Decode(
        mxplan::Load(ReadFile(argv[i]), nullptr, mxplan::FindLibrary("onednn")).program));
  }
  mxplan::SetMemoryDebug(true);
  const char* only = std::getenv("FUZZ_ROUND");
  long counts[3] = {};
  long round = 0;
  auto sound = [&](const Program& program) {
    Random random(seed, /*tame=*/true);
    return Try(ProgramWriter().Write(program), &random) == Outcome::kRan;
  };
  for (int i = 3; i < argc; ++i) {
    if (!sound(programs[static_cast<size_t>(i) - 3])) {
      std::fprintf(stderr, "%s does not run unchanged\n", argv[i]);
      return 1;
    }
  }
  // If this process dies, the number of the round is in the file.
  int file = open("round", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, sizeof(long long)) != 0) return 2;
  auto* current = static_cast<long long*>(
      mmap(nullptr, sizeof(long long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  for (; only ? round < 1 : budget.Allows(round); ++round) {
    const auto number = only ? std::atoll(only) : round;
    Random random(seed * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(number));
    std::string bytes = ProgramWriter().Write(Changed(random.Pick(programs), &random));
    if (std::getenv("FUZZ_TRACE")) std::ofstream("last.bin", std::ios::binary) << bytes;
    *current = number;
    try {
      ++counts[static_cast<int>(Try(bytes, &random))];
    } catch (const Finding& finding) {
      std::fprintf(stderr, "round %lld of seed %llu: %s\n%s", static_cast<long long>(number),
                   static_cast<unsigned long long>(seed), finding.what(),
                   mxplan::ToText(mxplan::Decode(bytes)).c_str());
      return 1;
    }
  }
  std::printf("%ld inputs: %ld refused, %ld too large, %ld run\n", round, counts[0], counts[1],
              counts[2]);
  return 0;
}
