// How long a fuzzing program goes on.
#ifndef MXPLAN_TESTS_CPP_FUZZ_BUDGET_H_
#define MXPLAN_TESTS_CPP_FUZZ_BUDGET_H_

#include <chrono>
#include <cstdlib>
#include <string>

// "30" is thirty seconds, "5000x" five thousand rounds.
class Budget {
 public:
  explicit Budget(const std::string& text)
      : counts_(!text.empty() && text.back() == 'x'), limit_(std::atof(text.c_str())) {}

  bool Allows(long round) const {
    if (counts_) return static_cast<double>(round) < limit_;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() <
           limit_;
  }

 private:
  bool counts_;
  double limit_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

#endif  // MXPLAN_TESTS_CPP_FUZZ_BUDGET_H_
