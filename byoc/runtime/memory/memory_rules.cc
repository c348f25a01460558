// The rules of memory, by working through a program; see memory_rules.h.
//
// A ledger says of each byte of the arena and of the outputs which values it holds.  A step's
// result takes over its bytes; a concatenation leaves the pieces in it what they are.  A value may
// be read where its bytes hold the value itself, or the nearest one it views that a step writes; a
// whole that no step writes is read by its pieces.
#include "memory/memory_rules.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "memory/buffer.h"

namespace mxplan {
namespace {

// Bytes [begin, end) of the arena (space -1) or of an output (its value).
struct Range {
  int space = -1;
  int64_t begin = 0, end = 0;

  bool Overlaps(const Range& other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
  bool Contains(const Range& other) const {
    return space == other.space && begin <= other.begin && other.end <= end;
  }
  bool operator==(const Range& other) const {
    return space == other.space && begin == other.begin && end == other.end;
  }
};

class Ledger {
 public:
  struct Entry {
    int64_t end;
    std::vector<int> values;  // what the bytes hold; none: nothing of use
  };

  void Write(const Range& range, std::vector<int> values) {
    if (range.begin >= range.end) return;
    auto& entries = spaces_[range.space];
    Split(&entries, range.begin);
    Split(&entries, range.end);
    entries.erase(entries.lower_bound(range.begin), entries.lower_bound(range.end));
    entries[range.begin] = {range.end, std::move(values)};
  }

  void Add(const Range& range, int value) {
    auto& entries = spaces_[range.space];
    Split(&entries, range.begin);
    Split(&entries, range.end);
    for (auto at = entries.lower_bound(range.begin); at != entries.lower_bound(range.end); ++at) {
      at->second.values.push_back(value);
    }
  }

  // Whether some byte in `range` holds a value.
  bool Holds(const Range& range) {
    auto& entries = spaces_[range.space];
    Split(&entries, range.begin);
    Split(&entries, range.end);
    return std::any_of(entries.lower_bound(range.begin), entries.lower_bound(range.end),
                       [](const auto& entry) { return !entry.second.values.empty(); });
  }

  // The first byte in `range` for which `holds(values)` is false, or its end.
  template <typename Holds>
  int64_t FirstWithout(const Range& range, const Holds& holds) {
    auto& entries = spaces_[range.space];
    int64_t at = range.begin;
    Split(&entries, range.begin);
    for (auto entry = entries.lower_bound(range.begin); at < range.end; ++entry) {
      if (entry == entries.end() || entry->first > at || !holds(entry->second.values)) return at;
      at = entry->second.end;
    }
    return range.end;
  }

 private:
  using Entries = std::map<int64_t, Entry>;

  static void Split(Entries* entries, int64_t at) {
    auto next = entries->lower_bound(at);
    if (next == entries->begin()) return;
    Entry& before = std::prev(next)->second;
    if (before.end <= at) return;
    Entry behind = before;
    before.end = at;
    entries->emplace(at, std::move(behind));
  }

  std::map<int, Entries> spaces_;
};

class Checker {
 public:
  Checker(const Resolved& resolved, const Placement& placement)
      : resolved_(resolved), program_(*resolved.program), placement_(placement) {
    written_.assign(program_.values.size(), false);
    done_ = written_;
    for (const Step& step : program_.steps) {
      for (int result : step.Results()) written_[static_cast<size_t>(result)] = true;
    }
  }

  void Run() {
    CheckAlignment();
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      try {
        RunStep(i);
      } catch (const Error& error) {
        throw Error(error.kind(), Concat(program_.steps[i].kind, " ", program_.steps[i].name, ": ",
                                         error.what()));
      }
    }
    for (int output : program_.outputs) {
      Range range = RangeOf(output);
      int64_t at = ledger_.FirstWithout(range, [](const auto& values) { return !values.empty(); });
      if (at < range.end) {
        ThrowInvalidInput("output ", Name(output), ": byte ", at, " of ", range.end,
                          " is never written");
      }
    }
  }

 private:
  const std::string& Name(int value) const {
    return program_.values[static_cast<size_t>(value)].name;
  }
  const ResolvedValue& Get(int value) const { return resolved_.values[static_cast<size_t>(value)]; }
  const Value& RootOf(int value) const {
    return program_.values[static_cast<size_t>(Get(value).root)];
  }
  // Inputs and constants are the caller's, who has written them.
  bool IsGiven(int value) const {
    ValueKind kind = RootOf(value).kind;
    return kind == ValueKind::kInput || kind == ValueKind::kConstant;
  }

  Range RangeOf(int value) const {
    const ResolvedValue& resolved = Get(value);
    bool local = RootOf(value).kind == ValueKind::kLocal;
    int64_t base = local ? placement_.values[static_cast<size_t>(resolved.root)] : 0;
    int64_t begin = base + resolved.offset;
    return {local ? -1 : resolved.root, begin, begin + resolved.Bytes()};
  }

  void CheckAlignment() const {
    for (size_t i = 0; i < program_.values.size(); ++i) {
      const Value& value = program_.values[i];
      const auto id = static_cast<int>(i);
      int64_t element = Get(id).layout.element_bytes;
      if (Get(id).offset % element != 0) {
        ThrowInvalidInput("value ", value.name, ": expected a place in ", RootOf(id).name,
                          " at a multiple of ", element, " bytes, got byte ", Get(id).offset);
      }
      bool owner = value.kind == ValueKind::kLocal && value.alias_of < 0;
      if (owner && placement_.values[i] % kAlignment != 0) {
        ThrowInvalidInput("value ", value.name, ": expected an offset that is a multiple of ",
                          kAlignment, ", got ", placement_.values[i]);
      }
    }
  }

  // The value itself or the nearest one it views that a step writes; -1 if there is none.
  int WriterOf(int value) const {
    while (value >= 0 && !written_[static_cast<size_t>(value)]) {
      value = static_cast<int>(program_.values[static_cast<size_t>(value)].alias_of);
    }
    return value;
  }

  void CheckRead(int value) {
    if (IsGiven(value)) return;
    Range range = RangeOf(value);
    int writer = WriterOf(value);
    auto holds = [&](const std::vector<int>& values) {
      return std::any_of(values.begin(), values.end(), [&](int held) {
        return writer >= 0 ? held == writer : Get(held).root == Get(value).root;
      });
    };
    int64_t at = ledger_.FirstWithout(range, holds);
    bool early = writer >= 0 && !done_[static_cast<size_t>(writer)];  // also a value without bytes
    if (early || at < range.end) {
      ThrowInvalidInput("value ", Name(value), " is read, but its byte ", at - range.begin, " of ",
                        range.end - range.begin, " is not written yet or overwritten");
    }
  }

  // Whether `value` may stand where the result of `step` does: a sum's, a piece of a concatenation,
  // or what an elementwise step turns into its result in place.
  bool MayShare(const Step& step, int value, int dst) const {
    if (Get(value).root != Get(dst).root) return false;  // an alias says so, never an offset
    if (step.kind == "concat")
      return true;  // whether it stands where it is wanted, the executable knows
    bool same = RangeOf(value) == RangeOf(dst) && Get(value).dims == Get(dst).dims &&
                program_.values[static_cast<size_t>(value)].dtype ==
                    program_.values[static_cast<size_t>(dst)].dtype &&
                (Get(value).dims.empty() || SamePlacement(Get(value).layout, Get(dst).layout));
    if (!same) return false;
    auto is_sum = [](const PostOp& op) { return op.kind == PostOp::Kind::kSum; };
    bool sums = std::any_of(step.post_ops.begin(), step.post_ops.end(), is_sum);
    if (sums)
      return program_.values[static_cast<size_t>(dst)].alias_of == value && !Reads(step, value);
    const bool elementwise =
        step.kind == "eltwise" || step.kind == "binary" || step.kind == "squeeze_excite";
    const bool writes_over =
        step.kind == "put" || step.kind == "scatter" || step.kind == "scatter_elements";
    return (elementwise || (writes_over && IsSourceAlone(step, value))) &&
           !ReadByPostOp(step, value);
  }

  static bool Reads(const Step& step, int value) {
    auto reads = [&](const Operand& o) { return !o.IsResult() && o.value == value; };
    return std::any_of(step.operands.begin(), step.operands.end(), reads) ||
           ReadByPostOp(step, value);
  }

  static bool IsSourceAlone(const Step& step, int value) {
    return std::all_of(step.operands.begin(), step.operands.end(), [&](const Operand& o) {
      return o.IsResult() || (o.role == "src") == (o.value == value);
    });
  }

  static bool ReadByPostOp(const Step& step, int value) {
    return std::any_of(step.post_ops.begin(), step.post_ops.end(), [&](const PostOp& op) {
      return op.kind == PostOp::Kind::kBinary && op.value == value;
    });
  }

  void RunStep(size_t at) {
    const Step& step = program_.steps[at];
    const Placement::Scratchpad& scratch = placement_.scratchpads[at];
    Range scratchpad;
    if (scratch.offset >= 0) scratchpad = {-1, scratch.offset, scratch.offset + scratch.bytes};
    if (scratchpad.begin % kAlignment != 0) {
      ThrowInvalidInput("scratchpad: expected an offset that is a multiple of ", kAlignment,
                        ", got ", scratchpad.begin);
    }
    for (int value : ReadsOf(program_, at)) {
      CheckRead(value);
      if (!IsGiven(value) && scratchpad.Overlaps(RangeOf(value))) {
        ThrowInvalidInput("the scratchpad overlaps ", Name(value));
      }
    }
    ledger_.Write(scratchpad, {});
    const std::vector<int> results = step.Results();
    for (size_t i = 0; i < results.size(); ++i) {
      Range range = RangeOf(results[i]);
      if (scratchpad.Overlaps(range)) {
        ThrowInvalidInput("the scratchpad overlaps ", Name(results[i]));
      }
      for (size_t before = 0; before < i; ++before) {
        if (!range.Overlaps(RangeOf(results[before]))) continue;
        ThrowInvalidInput(Name(results[i]), " overlaps ", Name(results[before]),
                          ", another result of the step");
      }
    }
    for (const Operand& operand : step.operands) {
      if (operand.IsResult()) RunResult(at, operand);
    }
  }

  // One result of a step whose operands are known to hold what they should.
  void RunResult(size_t at, const Operand& operand) {
    const Step& step = program_.steps[at];
    const int dst = operand.value;
    const Range result = RangeOf(dst);
    bool in_place = false;
    std::vector<int> pieces;  // that stand in the result already
    for (int value : ReadsOf(program_, at)) {
      Range range = RangeOf(value);
      if (IsGiven(value) || !range.Overlaps(result)) continue;
      if (!MayShare(step, value, dst)) {
        ThrowInvalidInput(operand.role, ": ", Name(dst), " overlaps ", Name(value),
                          ", which the step reads and cannot write over");
      }
      in_place = true;
      if (step.kind == "concat" && result.Contains(range)) pieces.push_back(value);
    }
    if (result.space >= 0 && !in_place && ledger_.Holds(result)) {
      ThrowInvalidInput(operand.role, ": ", Name(dst),
                        " overwrites what an earlier step wrote into output ", Name(result.space));
    }
    WriteResult(dst, result, pieces);
    done_[static_cast<size_t>(dst)] = true;
  }

  // All of the result but the pieces takes over its bytes; theirs hold both.
  void WriteResult(int dst, const Range& result, const std::vector<int>& pieces) {
    std::vector<Range> kept;
    for (int piece : pieces) kept.push_back(RangeOf(piece));
    std::sort(kept.begin(), kept.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    int64_t at = result.begin;
    for (const Range& range : kept) {
      ledger_.Write({result.space, at, range.begin}, {dst});
      at = std::max(at, range.end);
    }
    ledger_.Write({result.space, at, result.end}, {dst});
    int64_t begin = result.begin;
    for (const Range& range : kept) {  // each byte once, though pieces may overlap
      Range rest = {range.space, std::max(begin, range.begin), range.end};
      if (rest.begin < rest.end) ledger_.Add(rest, dst);
      begin = std::max(begin, range.end);
    }
  }

  const Resolved& resolved_;
  const Program& program_;
  const Placement& placement_;
  std::vector<bool> written_, done_;  // by a step, and by one before
  Ledger ledger_;
};

}  // namespace

void CheckMemory(const Resolved& resolved, const Placement& placement) {
  Checker(resolved, placement).Run();
}

}  // namespace mxplan
