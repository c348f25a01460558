// A loaded region; see region.h.
#include "region/region.h"

#include <time.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "weights/packed_constants.h"

namespace mxplan {
namespace {

constexpr size_t kSpecializations = 16;  // that are kept unless more are asked for

// Libraries have `count` threads as long as it lives, and `most` behind.
class FewerThreads {
 public:
  FewerThreads(const Libraries& libraries, int count, int most)
      : libraries_(libraries), most_(most) {
    libraries_.SetThreads(count);
  }
  ~FewerThreads() { libraries_.SetThreads(most_); }
  FewerThreads(const FewerThreads&) = delete;
  FewerThreads& operator=(const FewerThreads&) = delete;

 private:
  const Libraries& libraries_;
  int most_;
};

int64_t NowOn(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}
int64_t WallNow() { return NowOn(CLOCK_MONOTONIC); }
int64_t OwnNow() { return NowOn(CLOCK_THREAD_CPUTIME_ID); }

void RunTimed(Specialization* specialization, int threads, ThreadChoice* choice,
              const std::vector<void*>& io, char* lent) {
  const int64_t began = WallNow(), own = OwnNow();
  specialization->Run(io, lent);
  const int64_t now = WallNow();
  choice->Note(threads, now, now - began, OwnNow() - own);
}

}  // namespace

Region::Region(Program program, std::vector<ConstantData> constants, const Library& library,
               Weights::Sharing sharing)
    : program_(std::move(program)),
      libraries_(program_, library),
      weights_(std::move(constants), library, sharing),
      most_(kSpecializations) {
  if (weights_.constants().size() != program_.constants.size()) {
    ThrowInvalidInput("region ", program_.name, " has ", program_.constants.size(),
                      " constants, not ", weights_.constants().size());
  }
}

std::shared_ptr<Specialization> Region::Find(const std::vector<int64_t>& symbols) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Slot& slot : slots_) {
    if (slot.specialization->symbols() == symbols &&
        libraries_.AreNow(slot.specialization->states())) {
      slot.last_use = ++clock_;
      return slot.specialization;
    }
  }
  return nullptr;
}

std::shared_ptr<Specialization> Region::Get(const std::vector<int64_t>& symbols) {
  if (auto found = Find(symbols)) return found;
  std::lock_guard<std::mutex> build(build_mutex_);
  if (auto found = Find(symbols)) return found;
  std::shared_ptr<Specialization> made;
  try {
    made = std::make_shared<Specialization>(program_, libraries_, &weights_, symbols);
  } catch (const Error& error) {
    throw Error(error.kind(), Concat("region ", program_.name, ": ", error.what()));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (slots_.size() >= most_) {
    auto oldest = std::min_element(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) {
      return a.last_use < b.last_use;
    });
    slots_.erase(oldest);  // calls that still run keep theirs alive
    ++evictions_;
  }
  slots_.push_back({made, ++clock_});
  return made;
}

std::vector<ConstantData> Region::PlainConstants() const {
  std::vector<ConstantData> plain = constants();
  for (ConstantData& constant : plain) {
    if (!constant.IsPlain()) constant = Unpacked(constant, libraries_.own());
  }
  return plain;
}

std::vector<ConstantData> Region::PackedConstants() {
  if (!program_.IsStatic()) return PlainConstants();
  std::shared_ptr<Specialization> made = Get({});
  return mxplan::PackedConstants(weights_, made->packed(), made->ReadInPlace());
}

void Region::Prepare() {
  if (program_.IsStatic()) Get({});
}

void Region::Keep(size_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  most_ = std::max(most_, count);
}

void Region::Run(const std::vector<TensorRef>& tensors, const std::vector<int64_t>& numbers) {
  // Kept between calls so that a warm call allocates nothing.
  thread_local std::vector<int64_t> symbols;
  thread_local std::vector<void*> io;
  CheckTensors(program_, libraries_.own().memory(), tensors);
  ReadSymbols(program_, tensors, numbers, &symbols);
  std::shared_ptr<Specialization> specialization = Get(symbols);
  CheckShapes(program_, specialization->physical_shapes(), tensors);
  char* lent =
      LentArena(program_, libraries_.own().memory(), specialization->arena_bytes(), tensors);
  io.clear();
  for (const TensorRef& tensor : tensors) io.push_back(tensor.data);
  RunShared(specialization.get(), io, lent);
}

bool Region::HasRoom() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return slots_.size() < most_;
}

std::shared_ptr<Specialization> Region::Like(const Specialization& all) {
  try {
    std::shared_ptr<Specialization> made = Find(all.symbols());
    if (!made && HasRoom()) made = Get(all.symbols());
    if (made && made->ComputesLike(all)) return made;
  } catch (const Error&) {  // the region does without
  }
  return nullptr;
}

void Region::RunShared(Specialization* all, const std::vector<void*>& io, char* lent) {
  ThreadChoice* choice = all->thread_choice();
  if (choice == nullptr) return all->Run(io, lent);
  const int most = all->states()[0].threads, threads = choice->Next();
  if (threads < most) {
    const FewerThreads fewer(libraries_, threads, most);
    if (auto like = Like(*all)) return RunTimed(like.get(), threads, choice, io, lent);
    choice->Stay();
  } else if (choice->IsDue()) {
    return RunTimed(all, threads, choice, io, lent);
  }
  all->Run(io, lent);
}

int64_t Region::PackedBytes() const {
  std::set<const PackedWeights*> counted;
  int64_t bytes = 0;
  for (const Slot& slot : slots_) {
    for (const Weights::Packed& packed : slot.specialization->packed()) {
      if (packed.weights->mapped()) continue;
      if (counted.insert(packed.weights.get()).second) bytes += packed.weights->bytes();
    }
  }
  return bytes;
}

std::string Region::Stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  JsonWriter json;
  json.BeginObject();
  json.Key("region").String(program_.name);
  json.Key("packed_weight_bytes").Integer(PackedBytes());
  json.Key("evictions").Integer(evictions_);
  json.Key("most_specializations").Integer(static_cast<int64_t>(most_));
  json.Key("specializations").BeginArray();
  for (const Slot& slot : slots_) {
    const Specialization& specialization = *slot.specialization;
    json.BeginObject();
    json.Key("symbols").BeginObject();
    for (size_t i = 0; i < program_.symbols.size(); ++i) {
      json.Key(program_.symbols[i].name).Integer(specialization.symbols()[i]);
    }
    json.EndObject();
    json.Key("threads").Integer(specialization.states()[0].threads);
    json.Key("arena_bytes").Integer(specialization.arena_bytes() + specialization.spilled_bytes());
    json.Key("spilled_scratchpad_bytes").Integer(specialization.spilled_bytes());
    json.Key("contexts").Integer(static_cast<int64_t>(specialization.contexts()));
    json.Key("calls").Integer(specialization.calls());
    json.Key("steps").BeginArray();
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Executable& executable = specialization.executables()[i];
      json.BeginObject();
      json.Key("name").String(program_.steps[i].name);
      json.Key("kind").String(program_.steps[i].kind);
      json.Key("implementation").String(executable.implementation);
      json.Key("missing").String(executable.missing);
      json.Key("refused").BeginArray();
      for (const RefusedImplementation& refused : executable.refused) {
        json.BeginArray().String(refused.implementation).String(refused.reason).EndArray();
      }
      json.EndArray();
      json.Key("scratchpad_bytes").Integer(executable.scratchpad_bytes);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace mxplan
