// Memory under watch; see memory_debug.h.
#include "debug/memory_debug.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "region/specialization.h"

namespace mxplan {
namespace {

std::atomic<bool> memory_debug{false};

constexpr unsigned char kPoison = 0xFF;  // float32, bfloat16 and float16: NaN; int8: -1

// FNV-1a over words of eight bytes.
uint64_t Sum(const char* begin, const char* end) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t sum = 0xcbf29ce484222325;
  for (; end - begin >= 8; begin += 8) {
    uint64_t word;
    std::memcpy(&word, begin, sizeof(word));
    sum = (sum ^ word) * kPrime;
    sum ^= sum >> 32;  // else high bits of a word would never reach low bits of the sum
  }
  for (; begin < end; ++begin) sum = (sum ^ static_cast<unsigned char>(*begin)) * kPrime;
  return sum;
}

// First byte that is not poison, or `end`.
const char* FirstClean(const char* begin, const char* end) {
  uint64_t poison;
  std::memset(&poison, kPoison, sizeof(poison));
  for (; end - begin >= 8; begin += 8) {
    uint64_t word;
    std::memcpy(&word, begin, sizeof(word));
    if (word != poison) break;
  }
  while (begin < end && static_cast<unsigned char>(*begin) == kPoison) ++begin;
  return begin;
}

// Element offset of a position in the padded dimensions.
int64_t ElementOffset(const PhysicalLayout& layout, Dims position) {
  int64_t offset = 0;
  int64_t step = 1;
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    int64_t& at = position[static_cast<size_t>(layout.block_axes[i])];
    offset += at % layout.blocks[i] * step;
    at /= layout.blocks[i];
    step *= layout.blocks[i];
  }
  for (size_t i = 0; i < position.size(); ++i) offset += position[i] * layout.strides[i];
  return offset;
}

// Steps `position` through the box [low, high); false behind its last element.
bool Next(const Dims& low, const Dims& high, Dims* position) {
  for (size_t i = position->size(); i-- > 0;) {
    if (++(*position)[i] < high[i]) return true;
    (*position)[i] = low[i];
  }
  return false;
}

// Number of elements in the tails that are not zero; nothing but zero bytes is a zero.
int64_t DirtyTails(const ResolvedValue& value, const char* data) {
  const Dims& dims = value.dims;
  const Dims& padded = value.layout.padded;
  auto size = static_cast<size_t>(value.layout.element_bytes);
  const char zero[8] = {};
  int64_t dirty = 0;
  for (size_t axis = 0; axis < padded.size(); ++axis) {
    if (padded[axis] == dims[axis] || dims[axis] == 0) continue;
    Dims low(dims.size(), 0);
    low[axis] = dims[axis];
    if (std::find(padded.begin(), padded.end(), 0) != padded.end()) continue;
    Dims position = low;
    do {
      int64_t offset = ElementOffset(value.layout, position);
      dirty += std::memcmp(data + static_cast<size_t>(offset) * size, zero, size) != 0;
    } while (Next(low, padded, &position));
  }
  return dirty;
}

}  // namespace

void SetMemoryDebug(bool on) { memory_debug.store(on, std::memory_order_relaxed); }

bool MemoryDebugOn() { return memory_debug.load(std::memory_order_relaxed); }

MemoryDebug::MemoryDebug(const Specialization& owner, char* spill) : owner_(owner), spill_(spill) {
  FindLives();
}

// --- lives ---------------------------------------------------------------------------------------

void MemoryDebug::FindLives() {
  const Program& program = owner_.program();
  written_.assign(program.values.size(), false);
  deaths_.assign(program.values.size(), 0);
  for (const Step& step : program.steps) {
    for (int result : step.Results()) written_[static_cast<size_t>(result)] = true;
  }
  for (size_t at = 0; at < program.steps.size(); ++at) {
    std::vector<int> touched = ReadsOf(program, at);
    for (int result : program.steps[at].Results()) touched.push_back(result);
    for (int value : touched) {
      int writer = WriterOf(value);
      if (writer >= 0) {
        deaths_[static_cast<size_t>(writer)] = at + 1;
        continue;
      }
      // A whole that no step writes itself: the pieces under the same root are what is read.
      for (size_t piece = 0; piece < written_.size(); ++piece) {
        bool under = program.roots[piece] == program.roots[static_cast<size_t>(value)];
        if (under && written_[piece]) deaths_[piece] = at + 1;
      }
    }
  }
}

// Outputs live on, and so do inputs; but in a lent arena something else may stand where an input
// was that this region has read for the last time.
bool MemoryDebug::DiesAt(int value, size_t step) const {
  const Program& program = owner_.program();
  int root = program.roots[static_cast<size_t>(value)];
  ValueKind kind = program.values[static_cast<size_t>(root)].kind;
  bool mortal = kind == ValueKind::kLocal || (kind == ValueKind::kInput && lent_);
  return mortal && deaths_[static_cast<size_t>(value)] == step + 1;
}

// The value whose bytes are read where `value` is: itself or the nearest one it views that a step
// writes or the caller gives; -1 for none, which is what views of constants have.
int MemoryDebug::WriterOf(int value) const {
  const std::vector<Value>& values = owner_.program().values;
  while (value >= 0 && !written_[static_cast<size_t>(value)]) {
    if (values[static_cast<size_t>(value)].kind == ValueKind::kInput) return value;
    value = static_cast<int>(values[static_cast<size_t>(value)].alias_of);
  }
  return value;
}

// --- bytes ---------------------------------------------------------------------------------------

bool MemoryDebug::IsLocal(int value) const {
  const Program& program = owner_.program();
  int root = program.roots[static_cast<size_t>(value)];
  return program.values[static_cast<size_t>(root)].kind == ValueKind::kLocal;
}

Span MemoryDebug::Scratchpad(size_t step) const {
  char* base = owner_.IsSpilled(step) ? spill_ : arena_ + owner_.ScratchpadOffset(step);
  return {base, base + owner_.executables()[step].scratchpad_bytes};
}

// Poisons what of `span` no living value under `root` holds; -1: all of it.
void MemoryDebug::Poison(Span span, int root) const {
  const std::vector<int>& roots = owner_.program().roots;
  std::vector<Span> kept;
  for (const Watched& watched : alive_) {
    if (roots[static_cast<size_t>(watched.value)] == root && watched.bytes.Overlaps(span)) {
      kept.push_back(watched.bytes);
    }
  }
  std::sort(kept.begin(), kept.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  char* at = span.begin;
  for (const Span& keep : kept) {
    if (keep.begin > at) std::memset(at, kPoison, static_cast<size_t>(keep.begin - at));
    at = std::max(at, keep.end);
  }
  if (at < span.end) std::memset(at, kPoison, static_cast<size_t>(span.end - at));
}

// --- a run ---------------------------------------------------------------------------------------

void MemoryDebug::Begin(const std::vector<void*>& io, char* arena, bool lent) {
  io_ = &io;
  arena_ = arena;
  lent_ = lent;
  alive_.clear();
  if (!lent_) std::memset(arena_, kPoison, static_cast<size_t>(owner_.arena_bytes()));
  for (int input : owner_.program().inputs) Watch(input);
}

void MemoryDebug::Before(size_t step) {
  const Program& program = owner_.program();
  CheckReads(step);
  for (int result : program.steps[step].Results()) {
    Poison(Bytes(result), program.roots[static_cast<size_t>(result)]);
  }
  Poison(Scratchpad(step), -1);
  CheckWatched(step, "has its result or scratchpad on top of");
  // Not left to the canaries: a scratchpad may hold addresses, which a result on top would break.
  for (int result : program.steps[step].Results()) {
    if (!Bytes(result).Overlaps(Scratchpad(step))) continue;
    ThrowInternal(Name(step), " has its scratchpad on top of its result, ", Name(result));
  }
  if (lent_) others_ = SumOfOthers(step);
}

void MemoryDebug::After(size_t step) {
  const Program& program = owner_.program();
  const std::vector<int> results = program.steps[step].Results();
  auto dies = [&](const Watched& watched) { return DiesAt(watched.value, step); };
  // The bytes that the result replaces in place were checked before the step.
  auto replaced = [&](const Watched& watched) {
    int root = program.roots[static_cast<size_t>(watched.value)];
    return dies(watched) && std::any_of(results.begin(), results.end(), [&](int result) {
             return program.roots[static_cast<size_t>(result)] == root &&
                    watched.bytes.Overlaps(Bytes(result));
           });
  };
  alive_.erase(std::remove_if(alive_.begin(), alive_.end(), replaced), alive_.end());
  CheckWatched(step, "changed");
  if (lent_ && SumOfOthers(step) != others_) {
    ThrowInternal(
        Name(step), ", which writes ", Name(results.front()),
        ", also wrote to bytes of the arena where neither that nor its scratchpad stands");
  }
  for (int result : results) {
    CheckTails(step, result, "wrote");
    Watch(result);
  }
  std::vector<Watched> dead;
  std::copy_if(alive_.begin(), alive_.end(), std::back_inserter(dead), dies);
  alive_.erase(std::remove_if(alive_.begin(), alive_.end(), dies), alive_.end());
  for (const Watched& watched : dead) {
    if (!IsLocal(watched.value)) continue;  // the caller's
    Poison(watched.bytes, program.roots[static_cast<size_t>(watched.value)]);
  }
  Poison(Scratchpad(step), -1);
  if (!lent_) CheckPoison(step);
}

void MemoryDebug::Watch(int value) {
  Span bytes = Bytes(value);
  alive_.push_back({value, bytes, Sum(bytes.begin, bytes.end)});
}

// --- checks --------------------------------------------------------------------------------------

void MemoryDebug::CheckReads(size_t step) const {
  for (int value : ReadsOf(owner_.program(), step)) {
    int writer = WriterOf(value);
    bool there = writer < 0 || std::any_of(
                                   alive_.begin(), alive_.end(),
                                   [&](const Watched& watched) { return watched.value == writer; });
    if (!there) {
      ThrowInternal(Name(step), " reads ", Name(value), " before any step has written ",
                    Name(writer));
    }
    CheckTails(step, value, "reads");
  }
}

void MemoryDebug::CheckTails(size_t step, int value, const char* how) const {
  const ResolvedValue& resolved = owner_.resolved().values[static_cast<size_t>(value)];
  int64_t dirty = DirtyTails(resolved, Bytes(value).begin);
  if (dirty > 0) {
    ThrowInternal(Name(step), " ", how, " ", Name(value), " with ", dirty,
                  " elements in the padding of its layout that are not zero");
  }
}

void MemoryDebug::CheckWatched(size_t step, const char* what) const {
  for (const Watched& watched : alive_) {
    if (Sum(watched.bytes.begin, watched.bytes.end) == watched.sum) continue;
    ThrowInternal(Name(step), ", which writes ", Name(owner_.program().steps[step].Find("dst")),
                  ", ", what, " ", Name(watched.value), ", which is alive until step ",
                  deaths_[static_cast<size_t>(watched.value)]);
  }
}

// Bytes of the arena outside of living values are poison, or something wrote where it must not.
void MemoryDebug::CheckPoison(size_t step) const {
  std::vector<Span> kept;
  for (const Watched& watched : alive_) {
    if (IsLocal(watched.value)) kept.push_back(watched.bytes);
  }
  char* end = arena_ + owner_.arena_bytes();
  kept.push_back({end, end});
  std::sort(kept.begin(), kept.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  const char* at = arena_;
  for (const Span& keep : kept) {
    if (keep.begin > at) {
      const char* clean = FirstClean(at, keep.begin);
      if (clean != keep.begin) {
        ThrowInternal(Name(step), ", which writes ", Name(owner_.program().steps[step].Find("dst")),
                      ", also wrote byte ", clean - arena_, " of the arena, where no value stands");
      }
    }
    at = std::max<const char*>(at, keep.end);
  }
}

// The sum of the arena without the step's result and scratchpad.
uint64_t MemoryDebug::SumOfOthers(size_t step) const {
  std::vector<Span> skipped = {Scratchpad(step)};
  for (int result : owner_.program().steps[step].Results()) skipped.push_back(Bytes(result));
  std::sort(skipped.begin(), skipped.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  char* at = arena_;
  char* end = arena_ + owner_.arena_bytes();
  uint64_t sum = 0;
  for (const Span& skip : skipped) {
    if (at < std::min(skip.begin, end)) sum = sum * 31 + Sum(at, std::min(skip.begin, end));
    at = std::max(at, std::min(skip.end, end));
  }
  return at < end ? sum * 31 + Sum(at, end) : sum;
}

std::string MemoryDebug::Name(int value) const {
  const Program& program = owner_.program();
  const Value& what = program.values[static_cast<size_t>(value)];
  if (!IsLocal(value)) return Concat("value ", what.name);
  Span bytes = Bytes(value);
  return Concat("value ", what.name, " (bytes ", bytes.begin - arena_, " to ", bytes.end - arena_,
                ")");
}

std::string MemoryDebug::Name(size_t step) const {
  const Step& what = owner_.program().steps[step];
  return Concat("region ", owner_.program().name, ": memory: step ", step, ", ", what.kind, " ",
                what.name);
}

}  // namespace mxplan
