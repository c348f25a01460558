// Fewer threads where others keep them waiting; see thread_choice.h.
#include "region/thread_choice.h"

#include <algorithm>

namespace mxplan {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kLeastWall = kMillisecond / 5;  // of calls that are all timed
constexpr uint32_t kOneIn = 16;                   // that is timed of shorter ones
constexpr int64_t kLeastWaiting = 20 * kMillisecond;
constexpr int64_t kFirstPatience = 8, kMostPatience = 1 << 12;
constexpr int64_t kFirstWindow = 50 * kMillisecond, kMostWindow = 1000 * kMillisecond;
constexpr int64_t kCallsOfWindow = 64;  // at least, of the longest one
constexpr int kCallsOfTrial = 3;
constexpr double kOwnShare = 0.75;  // less of a call's time than that is waiting
constexpr double kWorth = 0.9;      // of the time, which a change has to come below

}  // namespace

ThreadChoice::ThreadChoice(int most)
    : most_(most), held_(most), next_(most), patience_(kFirstPatience), window_(kFirstWindow) {}

bool ThreadChoice::IsDue() {
  if (last_wall_.load(std::memory_order_relaxed) >= kLeastWall) return true;
  return calls_.fetch_add(1, std::memory_order_relaxed) % kOneIn == 0;
}

void ThreadChoice::Note(int threads, int64_t now, int64_t wall, int64_t own) {
  last_wall_.store(wall, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex_);
  if (threads != Next()) return;  // of a call that began before the last change
  const bool waited = static_cast<double>(own) < kOwnShare * static_cast<double>(wall);
  switch (state_) {
    case State::kHeld:
      return NoteHeld(now, wall, waited && wall >= kLeastWall);
    case State::kTried:
      return NoteTried(now, wall, waited);
    case State::kProbed:
      return NoteProbed(now, wall);
    case State::kFixed:
      return;
  }
}

void ThreadChoice::Stay() {
  std::lock_guard<std::mutex> lock(mutex_);
  held_ = most_;
  Begin(State::kFixed, most_);
}

void ThreadChoice::NoteHeld(int64_t now, int64_t wall, bool waited) {
  usual_ = usual_ == 0 ? wall : usual_ + (wall - usual_) / 8;
  waiting_ = waited ? waiting_ + 1 : 0;
  waiting_wall_ = waited ? waiting_wall_ + wall : 0;
  if (waiting_ >= patience_ && waiting_wall_ >= kLeastWaiting && held_ > 1) {
    usual_ = waiting_wall_ / waiting_;
    return Begin(State::kTried, held_ / 2);
  }
  if (held_ < most_ && now >= until_) Begin(State::kProbed, most_);
}

// The first call of a trial is the first with so many threads, perhaps: the best one counts.
void ThreadChoice::NoteTried(int64_t now, int64_t wall, bool waited) {
  best_ = tried_ == 0 ? wall : std::min(best_, wall);
  if (++tried_ < kCallsOfTrial) return;
  if (static_cast<double>(best_) < kWorth * static_cast<double>(usual_)) {
    patience_ = kFirstPatience;
    return Hold(Next(), 0, now);
  }
  if (waited && Next() > 1) return Begin(State::kTried, Next() / 2);  // there were still too many
  patience_ = std::min(2 * patience_, kMostPatience);
  Hold(held_, 0, now);
}

void ThreadChoice::NoteProbed(int64_t now, int64_t wall) {
  sum_ += wall;
  const bool faster = static_cast<double>(sum_) < kWorth * static_cast<double>(++tried_ * usual_);
  if (faster && tried_ < kCallsOfTrial) return;
  if (faster) {
    window_ = kFirstWindow;
    return Hold(most_, 0, now);
  }
  window_ = std::min(2 * window_, std::max(kMostWindow, kCallsOfWindow * usual_));
  Hold(held_, usual_, now);
}

void ThreadChoice::Hold(int threads, int64_t usual, int64_t now) {
  held_ = threads;
  usual_ = usual;
  until_ = now + window_;
  Begin(State::kHeld, threads);
}

void ThreadChoice::Begin(State state, int threads) {
  state_ = state;
  next_.store(threads, std::memory_order_relaxed);
  waiting_ = 0;
  waiting_wall_ = 0;
  tried_ = 0;
  sum_ = 0;
}

}  // namespace mxplan
