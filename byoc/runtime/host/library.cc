// Kernels of this project's own as a library: plain C++ on OpenMP's threads, for what other
// libraries lack.
//
// Values of any type in layouts of any blocks; constants are read as they are.
#include "library/library.h"

#include <omp.h>

#include "base/error.h"
#include "host/kernels/kernels.h"
#include "host/layout.h"
#include "host/stage.h"
#include "host/steps/builders.h"

namespace mxplan::host {
namespace {

class HostBuilder final : public Builder {
 public:
  explicit HostBuilder(Resolved* resolved) : Builder(resolved), resolved_(resolved) {}

 private:
  Executable Make(const Step& step, bool) override { return BuildStep(step, resolved_); }

  Resolved* resolved_;
};

class Host final : public Library {
 public:
  const char* name() const override { return "host"; }
  const char* title() const override { return "the host library"; }

  ProcessState State() const override {
    ProcessState state;
    state.threads = omp_get_max_threads();
    state.parallel = omp_in_parallel() != 0;
    return state;
  }

  void SetThreads(int count) const override { omp_set_num_threads(count); }

  Stream* ThreadStream() const override {
    static DirectStream stream;  // it has no state
    return &stream;
  }

  PhysicalLayout LayoutOf(const Dims& dims, const std::string& dtype,
                          const std::string& tag) const override {
    return ParseLayout(dims, dtype, tag);
  }

  std::unique_ptr<Builder> NewBuilder(Resolved* resolved) const override {
    return std::make_unique<HostBuilder>(resolved);
  }

  void CheckForm(const ConstantData& constant) const override {
    ThrowInvalidInput("a constant in the form ", constant.form.packed,
                      ", which the host library has not");
  }
  void Unpack(const ConstantData& constant, char*) const override { CheckForm(constant); }
};

const bool registered = [] {
  RegisterLibrary(*new Host());  // never destroyed: modules outlive main's statics
  return true;
}();

}  // namespace
}  // namespace mxplan::host
