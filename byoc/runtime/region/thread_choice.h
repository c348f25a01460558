// Chooses the number of threads of a region's calls where other work shares the processors.
//
// Kernels wait for their slowest thread.  Where the system lets one wait for its turn, a call takes
// several times what it takes alone, and less with fewer threads.  The calling thread's processor
// time tells: it is as long as the call unless that waits.
//
//   all threads --(calls wait)--> half of them, tried --(faster)--> held --(now and then)--> all
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_THREAD_CHOICE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_THREAD_CHOICE_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace mxplan {

// Safe to use from many threads; times are nanoseconds.
class ThreadChoice {
 public:
  // `most` is the number that calls take by themselves, two at least.
  explicit ThreadChoice(int most);

  // Whether the next call is to be timed: short ones would lose more by that than they could gain.
  bool IsDue();
  // The number for the next call.
  int Next() const { return next_.load(std::memory_order_relaxed); }
  // Says what a call took with so many threads that ended at `now`: in all, and of its processor.
  void Note(int threads, int64_t now, int64_t wall, int64_t own);
  // Keeps to all threads for good.
  void Stay();

 private:
  enum class State : uint8_t { kHeld, kTried, kProbed, kFixed };

  void NoteHeld(int64_t now, int64_t wall, bool waited);
  void NoteTried(int64_t now, int64_t wall, bool waited);
  void NoteProbed(int64_t now, int64_t wall);
  // `usual` is a call's time with so many, 0 where it has to be seen.
  void Hold(int threads, int64_t usual, int64_t now);
  void Begin(State state, int threads);

  const int most_;
  std::atomic<int64_t> last_wall_{0};
  std::atomic<uint32_t> calls_{0};

  std::mutex mutex_;  // of all below
  State state_ = State::kHeld;
  int held_;               // threads, when none are tried
  std::atomic<int> next_;  // read without the mutex
  int waiting_ = 0;        // calls in a row that waited
  int64_t waiting_wall_ = 0;
  int64_t patience_;   // calls in a row that make it try fewer
  int64_t usual_ = 0;  // of calls with `held_` threads
  int tried_ = 0;      // calls of a trial or a probe so far
  int64_t best_ = 0, sum_ = 0;
  int64_t until_ = 0;  // fewer are held
  int64_t window_;     // how long
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_THREAD_CHOICE_H_
