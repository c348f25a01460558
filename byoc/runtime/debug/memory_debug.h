// Memory under watch: what a run in debug mode checks around every step, so that a wrong plan, a
// life cut short or a tail that is not zero stops the run with names instead of wrong numbers.
//
//   poison    bytes that no value holds are NaN (0xFF): at first, at birth and at death of a value
//   canaries  nothing but the step's result and scratchpad changes, neither values nor poison; in
//   an
//             arena that the caller lends, where others keep theirs: nothing of it at all
//   tails     the padding of blocked layouts is zero, in what a step reads and in what it wrote
//
// Lives follow from the program by the rules of passes/memory/liveness.py, never from the plan.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_DEBUG_MEMORY_DEBUG_H_
#define TVM_MXPLAN_BYOC_RUNTIME_DEBUG_MEMORY_DEBUG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "debug/step_watcher.h"
#include "debug/value_bytes.h"

namespace mxplan {

class Specialization;

// Whether runs that begin from now on are watched; off at first.  Safe to call from any thread.
void SetMemoryDebug(bool on);
bool MemoryDebugOn();

// Watches one context's runs.  Throws InternalError that names the step and the values.
class MemoryDebug final : public StepWatcher {
 public:
  // `spill` holds scratchpads that outgrew the plan.
  MemoryDebug(const Specialization& owner, char* spill);

  // Of a lent arena the bytes that no value of this region holds are left alone.
  void Begin(const std::vector<void*>& io, char* arena, bool lent) override;
  void Before(size_t step) override;
  void After(size_t step) override;

 private:
  struct Watched {
    int value;
    Span bytes;
    uint64_t sum;
  };

  void FindLives();
  bool DiesAt(int value, size_t step) const;
  bool IsLocal(int value) const;
  int WriterOf(int value) const;
  Span Bytes(int value) const { return BytesOf(owner_, arena_, *io_, value); }
  Span Scratchpad(size_t step) const;

  void Watch(int value);
  void CheckReads(size_t step) const;
  void CheckTails(size_t step, int value, const char* how) const;
  void CheckWatched(size_t step, const char* when) const;
  void CheckPoison(size_t step) const;
  uint64_t SumOfOthers(size_t step) const;
  void Poison(Span span, int root) const;
  std::string Name(int value) const;
  std::string Name(size_t step) const;

  const Specialization& owner_;
  char* spill_;
  char* arena_ = nullptr;
  bool lent_ = false;
  uint64_t others_ = 0;        // of a lent arena: the sum of what the step must not change
  std::vector<bool> written_;  // by a step of its own
  std::vector<size_t> deaths_;
  const std::vector<void*>* io_ = nullptr;
  std::vector<Watched> alive_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_DEBUG_MEMORY_DEBUG_H_
