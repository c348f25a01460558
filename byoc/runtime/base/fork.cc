// Lets a process that has computed on several threads be forked.
//
// A child has the thread that forked it alone, but libgomp's list of that thread's helpers as well,
// and waits for them for ever.  So they are ended before a fork; parent and child make new ones
// when they next compute.  What other threads hold while a process forks, its child never gets.
#include <pthread.h>

// Of OpenMP 5.0 (omp_pause_hard is 2); libgomp has it from GCC 9 on, other runtimes may not.
extern "C" __attribute__((weak)) int omp_pause_resource_all(int kind);

namespace mxplan {
namespace {

void EndHelpers() {
  constexpr int kPauseHard = 2;
  omp_pause_resource_all(kPauseHard);
}

[[maybe_unused]] const int kRegistered =
    omp_pause_resource_all == nullptr ? 0 : pthread_atfork(EndHelpers, nullptr, nullptr);

}  // namespace
}  // namespace mxplan
