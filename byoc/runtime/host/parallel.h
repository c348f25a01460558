// Work on all threads of OpenMP, which oneDNN's kernels run on too, where there is enough of it.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_PARALLEL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace mxplan::host {

// Nanoseconds of work below which waking other threads takes longer.
constexpr double kSerialNs = 15e3;

// Calls `work(thread, begin, end)` on parts of [0, count), each item once, with another `thread`
// below omp_get_max_threads() for parts that run at once; `item_ns` is about what an item takes.
// `work` throws nothing.
template <typename Work>
void ParallelForThreads(int64_t count, double item_ns, const Work& work) {
  if (count <= 0) return;
  const int threads = omp_get_max_threads();
  if (threads == 1 || count == 1 || static_cast<double>(count) * item_ns < kSerialNs) {
    work(int64_t{0}, int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), of = omp_get_num_threads();
    const int64_t each = count / of, more = count % of;
    const int64_t begin = thread * each + std::min(thread, more);
    const int64_t end = begin + each + (thread < more ? 1 : 0);
    if (begin < end) work(thread, begin, end);
  }
}

// The same for work that needs no number of its thread.
template <typename Work>
void ParallelFor(int64_t count, double item_ns, const Work& work) {
  ParallelForThreads(count, item_ns,
                     [&](int64_t, int64_t begin, int64_t end) { work(begin, end); });
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_PARALLEL_H_
