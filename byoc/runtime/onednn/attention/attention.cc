// The executable of attention: its queries in blocks, which threads take whole; see kernels.h.
//
//   src  [N, H, S, D]   key [N, G, T, D]   value [N, G, T, W]   mask? [N|1, H|1, S|1, T|1]
//   dst  [N, S, H, W]
//
// Past keys and values stand in front of key and value, and become one tensor with them.  Where
// they are caches, of which `filled` rows count, so are the joined ones; where both are the same
// memory, new rows alone are written.
//
// Heads h * G / H share keys and values, so their queries are rows of one problem.  Operands are
// read where they stand, in any order of axes whose last one is the innermost.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onednn/attention/joining.h"
#include "onednn/attention/kernels.h"
#include "onednn/steps/builders.h"

namespace mxplan {
namespace {

using attention::BlockOfNumbers;
using attention::KernelsOfNumbers;
using attention::QueryOfNumbers;
using attention::Short;

// Less than that many multiply-adds are done before another thread would have been woken.
constexpr double kWorkOfThread = 4e5;
// The cost of sums across lanes for each row and key, in multiply-adds of vectors.
constexpr int64_t kAcross = 5;
// Of such a step a part that packs keys and values.
constexpr int64_t kPacked = 4;
constexpr int64_t kMostRows = 128;
// Of packed keys and values, so that threads end at about the same time.
constexpr int64_t kPartsOfThread = 2;

enum ArgumentIndex : size_t {
  kSrc,
  kKey,
  kValue,
  kDst,
  kScratch,
  kMask,
  kPastKey,
  kPastValue,
  kJoinedKey,
  kJoinedValue,
  kFilled,
  kArguments
};
using Addresses = std::array<void*, kArguments>;

// Strides in elements of batch, heads and rows.
struct Strides {
  int64_t batch = 0, head = 0, row = 0;
};

struct Problem {
  int64_t batch = 0, heads = 0, groups = 0, rows = 0, keys = 0, depth = 0, width = 0;
  double scale = 1;
  int64_t before_row = 0;  // keys that the first row sees, beside itself
  bool causal = false, nan_is_zero = false;
  Strides src, key, value, mask, dst;
  int64_t mask_key = 0;   // stride
  int64_t mask_keys = 0;  // of as many it tells
  bool masked = false;
  int64_t past = 0;  // of the keys, those that come in a tensor of their own
  bool joins = false;
  bool caches = false;   // `past` and `keys` are known when it runs
  int64_t capacity = 0;  // rows of joined keys and values
  Strides past_key, past_value, joined_key, joined_value;

  int64_t heads_of_group() const { return heads / groups; }
  // Queries that share keys.
  int64_t queries() const { return heads_of_group() * rows; }
  // The same where `filled` rows of caches count.
  Problem Filled(int64_t filled) const {
    const int64_t fresh = keys - past;
    if (filled < 0 || filled > capacity - fresh) {
      ThrowInvalidInput("filled: expected 0 to ", capacity - fresh, " rows of caches of ", capacity,
                        " in front of ", fresh, " new ones, got ", filled);
    }
    if (masked && mask_key > 0 && mask_keys < filled + fresh) {
      ThrowInvalidInput("mask: expected ", filled + fresh, " keys or more, as many as count, got ",
                        mask_keys);
    }
    Problem found = *this;
    found.before_row += filled - past;
    found.past = filled;
    found.keys = filled + fresh;
    return found;
  }
};

// Some of the queries that share keys; few ones are taken one by one.
struct Part {
  int64_t first = 0, count = 0;
  bool few = false;
};

template <typename Number>
std::vector<Part> PartsOf(const Problem& p, const KernelsOfNumbers<Number>& kernels, int threads) {
  int64_t whole = p.queries() / kernels.lanes, left = p.queries() % kernels.lanes;
  const bool packs = kernels.least_packed > 0 && p.keys >= kernels.least_packed;
  // A row alone takes depth / lanes steps for each key, and sums across lanes; a vector of rows
  // takes depth; packing keys takes a part of that, and then rows take next to nothing.
  const bool beside = packs && whole > 0;
  const int64_t together = packs && left > 1 ? p.depth / kPacked : p.depth;
  bool few = !beside && left > 0 && left * (p.depth / kernels.lanes + kAcross) < together;
  if (left > 0 && !few) {
    ++whole;
    left = 0;
  }
  std::vector<Part> parts;
  int64_t count = (whole + kernels.most_lanes - 1) / kernels.most_lanes;
  if (packs && threads > 1) {
    const int64_t heads = p.batch * p.groups;
    const int64_t wanted = (kPartsOfThread * threads + heads - 1) / heads;
    count = std::max(count, std::min(wanted, whole / 2));
  }
  int64_t first = 0, last = p.queries() - left;
  for (int64_t i = 0; i < count; ++i) {
    int64_t vectors = whole * (i + 1) / count - whole * i / count;
    int64_t rows = std::min(vectors * kernels.lanes, last - first);
    parts.push_back({first, rows, false});
    first += rows;
  }
  if (left > 0) parts.push_back({first, left, true});
  return parts;
}

// On numbers of one type; masks and scratch are float32.
template <typename Number>
class AttentionStage final : public MemoryStage {
 public:
  AttentionStage(const Problem& problem, const KernelsOfNumbers<Number>& kernels, int threads,
                 const std::vector<ArgumentIndex>& places,
                 const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments),
        problem_(problem),
        kernels_(kernels),
        parts_(PartsOf(problem, kernels, threads)),
        places_(places),
        threads_(threads),
        scratch_(kernels.scratch(problem.depth, problem.width)) {}

  void Execute(dnnl_stream_t, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Addresses data{};
    for (size_t i = 0; i < memories.size(); ++i) data.at(places_[i]) = Data<void>(memories[i]);
    const Problem problem =
        problem_.caches ? problem_.Filled(*static_cast<const int32_t*>(data[kFilled])) : problem_;
    const auto parts = static_cast<int64_t>(parts_.size());
    const int64_t items = problem.batch * problem.groups * parts;
#pragma omp parallel num_threads(threads_)
    {
      int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      if (problem.joins && parts > 1) {
        const int64_t heads = problem.batch * problem.groups;
        for (int64_t i = heads * thread / threads; i < heads * (thread + 1) / threads; ++i) {
          JoinHead(problem, data, i);
        }
#pragma omp barrier
      }
      for (int64_t item = items * thread / threads; item < items * (thread + 1) / threads; ++item) {
        Run(problem, data, item / parts, parts_[static_cast<size_t>(item % parts)],
            static_cast<float*>(data[kScratch]) + thread * scratch_);
      }
    }
  }

 private:
  // Keys and values of a head behind past ones, which are in caches then.
  void JoinHead(const Problem& p, const Addresses& data, int64_t group) const {
    const int64_t sample = group / p.groups, head = group % p.groups;
    auto rows = [&](ArgumentIndex at, const Strides& s, int64_t count) {
      auto* from = static_cast<Number*>(data.at(at)) + sample * s.batch + head * s.head;
      return attention::ByteRows{reinterpret_cast<char*>(from), count, Bytes(s.row)};
    };
    const int64_t fresh = p.keys - p.past;
    attention::Join(rows(kPastKey, p.past_key, p.past), rows(kKey, p.key, fresh), Bytes(p.depth),
                    rows(kJoinedKey, p.joined_key, p.capacity));
    attention::Join(rows(kPastValue, p.past_value, p.past), rows(kValue, p.value, fresh),
                    Bytes(p.width), rows(kJoinedValue, p.joined_value, p.capacity));
  }

  static int64_t Bytes(int64_t numbers) { return numbers * static_cast<int64_t>(sizeof(Number)); }

  // One part of the queries of a group of heads; `group` counts those of all samples.
  void Run(const Problem& p, const Addresses& data, int64_t group, const Part& part,
           float* scratch) const {
    const int64_t sample = group / p.groups, shared = group % p.groups;
    auto numbers = [&](ArgumentIndex at) { return static_cast<Number*>(data.at(at)); };
    BlockOfNumbers<Number> block;
    block.keys = p.keys;
    block.depth = p.depth;
    block.width = p.width;
    block.scale = static_cast<float>(p.scale);
    block.masked = p.masked;
    block.one_mask = p.mask.row == 0 && (p.mask.head == 0 || p.heads == p.groups);
    block.mask_stride = p.mask_key;
    block.dead_rows_are_zero = p.nan_is_zero;
    auto rows = [&](ArgumentIndex at, const Strides& s) {
      return attention::RowsOfNumbers<Number>{numbers(at) + sample * s.batch + shared * s.head,
                                              s.row};
    };
    if (p.joins) {
      if (parts_.size() == 1) JoinHead(p, data, group);
      block.key = rows(kJoinedKey, p.joined_key);
      block.value = rows(kJoinedValue, p.joined_value);
    } else {
      block.key = rows(kKey, p.key);
      block.value = rows(kValue, p.value);
    }
    std::array<QueryOfNumbers<Number>, kMostRows> queries;
    for (int64_t i = 0; i < part.count; ++i) {
      const int64_t row = (part.first + i) % p.rows;
      const int64_t head = shared * p.heads_of_group() + (part.first + i) / p.rows;
      auto at = [&](auto* from, const Strides& s) {
        return from + sample * s.batch + head * s.head + row * s.row;
      };
      QueryOfNumbers<Number>& query = queries.at(static_cast<size_t>(i));
      query.data = at(numbers(kSrc), p.src);
      query.dst = at(numbers(kDst), p.dst);
      if (p.masked) query.mask = at(static_cast<float*>(data[kMask]), p.mask);
      query.visible = p.causal ? std::min(p.keys, p.before_row + row + 1) : p.keys;
    }
    (part.few ? kernels_.few : kernels_.rows)(block, queries.data(), part.count, scratch);
  }

  Problem problem_;
  KernelsOfNumbers<Number> kernels_;
  std::vector<Part> parts_;
  std::vector<ArgumentIndex> places_;  // of the arguments
  int threads_;
  int64_t scratch_;  // floats of a thread
};

// Strides of [batch, heads, rows, numbers]; an extent of 1 that is broadcast has stride 0.
Strides StridesOf(const dnnl::memory::desc& desc, const char* role) {
  const Dims dims = desc.get_dims(), strides = desc.get_strides();
  if (desc.get_inner_nblks() != 0 || (strides[3] != 1 && dims[3] != 1)) {
    ThrowUnsupported(role, " in layout ", TagOf(desc),
                     ", expected one whose last axis is innermost");
  }
  return {strides[0], strides[1], strides[2]};
}

Problem ProblemOf(StepBuilder* b) {
  const Dims &src = b->Get("src").dims, &key = b->Get("key").dims;
  Problem p;
  p.batch = src[0];
  p.heads = src[1];
  p.groups = key[1];
  p.rows = src[2];
  p.keys = key[2];
  p.depth = src[3];
  p.width = b->Get("value").dims[3];
  p.scale = b->Real("scale");
  p.nan_is_zero = b->Flag("nan_is_zero");
  p.joins = b->Has("past_key");
  if (p.joins) {
    p.caches = b->Has("filled");
    p.capacity = b->Get("joined_key").dims[2];
    p.past = p.capacity - p.keys;  // of caches the most there may be
    p.keys = p.capacity;
    p.past_key = StridesOf(b->Fixed("past_key"), "past_key");
    p.past_value = StridesOf(b->Fixed("past_value"), "past_value");
    p.joined_key = StridesOf(b->Fixed("joined_key"), "joined_key");
    p.joined_value = StridesOf(b->Fixed("joined_value"), "joined_value");
  }
  const std::string& causal = b->Text("causal");
  p.causal = causal != "no";
  p.before_row = causal == "last" ? p.keys - p.rows : 0;
  p.src = StridesOf(b->Fixed("src"), "src");
  p.key = StridesOf(b->Fixed("key"), "key");
  p.value = StridesOf(b->Fixed("value"), "value");
  Strides dst = StridesOf(b->Fixed("dst"), "dst");
  p.dst = {dst.batch, dst.row, dst.head};  // its rows stand before its heads
  p.masked = b->Has("mask");
  if (p.masked) {
    const Dims& mask = b->Get("mask").dims;
    p.mask = StridesOf(b->Fixed("mask"), "mask");
    if (mask[0] == 1) p.mask.batch = 0;
    if (mask[1] == 1) p.mask.head = 0;
    if (mask[2] == 1) p.mask.row = 0;
    p.mask_key = mask[3] == 1 ? 0 : 1;
    p.mask_keys = mask[3];
  }
  return p;
}

template <typename Number>
void Build(StepBuilder* b, const KernelsOfNumbers<Number>& kernels) {
  const Problem problem = ProblemOf(b);
  if (b->Refuses(kernels.name)) b->ThrowRefused();
  const double work = static_cast<double>(problem.batch * problem.heads * problem.rows) *
                      static_cast<double>(problem.keys * (problem.depth + problem.width));
  const auto threads = static_cast<int>(
      std::min<double>(omp_get_max_threads(), std::floor(work / kWorkOfThread) + 1));
  auto value = [&](const char* role) {
    return MemoryArgument{0, Argument::Source::kValue, b->Id(role), b->Desc(role)};
  };
  const auto bytes =
      static_cast<int64_t>(sizeof(float)) * threads * kernels.scratch(problem.depth, problem.width);
  b->NeedScratchpad(bytes);
  dnnl::memory::desc scratch = MakeDesc({bytes}, dnnl::memory::data_type::u8, "a");
  std::vector<MemoryArgument> arguments = {
      value("src"), value("key"), value("value"), value("dst"),
      MemoryArgument{DNNL_ARG_SCRATCHPAD, Argument::Source::kScratchpad, -1, scratch}};
  std::vector<ArgumentIndex> places = {kSrc, kKey, kValue, kDst, kScratch};
  constexpr std::pair<const char*, ArgumentIndex> kOthers[] = {{"mask", kMask},
                                                               {"past_key", kPastKey},
                                                               {"past_value", kPastValue},
                                                               {"joined_key", kJoinedKey},
                                                               {"joined_value", kJoinedValue},
                                                               {"filled", kFilled}};
  for (const auto& [role, place] : kOthers) {
    if (!b->Has(role)) continue;
    arguments.push_back(value(role));
    places.push_back(place);
  }
  b->AddStage(
      std::make_unique<AttentionStage<Number>>(problem, kernels, threads, places, arguments),
      kernels.name);
}

}  // namespace

void BuildAttention(StepBuilder* b) {
  const auto type = b->Fixed("src").get_data_type();
  for (const Operand& operand : b->step().operands) {
    if (operand.role == "filled") continue;
    auto wanted = operand.role == "mask" ? dnnl::memory::data_type::f32 : type;
    if (b->Fixed(operand.value).get_data_type() != wanted) {
      ThrowUnsupported(operand.role, " in another type than expected: src, key, value and dst in ",
                       "one, mask in float32");
    }
  }
  const auto short_kernels = attention::SelectShortKernels();
  if (type == dnnl::memory::data_type::f32) {
    Build(b, attention::SelectKernels());
  } else if (type == dnnl::memory::data_type::bf16 && short_kernels.rows != nullptr) {
    Build(b, short_kernels);
  } else {
    ThrowUnsupported("attention is computed in float32, and in bfloat16 with avx512_bf16");
  }
}

}  // namespace mxplan
