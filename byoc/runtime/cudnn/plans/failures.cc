// Notes of failures; see failures.h.
#include "cudnn/plans/failures.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <tuple>

namespace mxplan {
namespace {

constexpr size_t kMost = 256;

struct Notes {
  std::mutex mutex;
  std::deque<PlanFailure> kept;
};

// Never destroyed: modules outlive main's statics.
Notes& TheNotes() {
  static auto* notes = new Notes();
  return *notes;
}

auto Tied(const PlanFailure& one) {
  const StepName& step = one.step;
  return std::tie(step.region, step.step, step.plans, one.engine, one.reason, one.next);
}

}  // namespace

void NoteFailure(const PlanFailure& failure) {
  Notes& notes = TheNotes();
  std::lock_guard<std::mutex> lock(notes.mutex);
  auto same = [&](const PlanFailure& one) { return Tied(one) == Tied(failure); };
  if (std::any_of(notes.kept.begin(), notes.kept.end(), same)) return;
  notes.kept.push_back(failure);
  if (notes.kept.size() > kMost) notes.kept.pop_front();
}

std::vector<PlanFailure> NotedFailures() {
  Notes& notes = TheNotes();
  std::lock_guard<std::mutex> lock(notes.mutex);
  return {notes.kept.begin(), notes.kept.end()};
}

}  // namespace mxplan
