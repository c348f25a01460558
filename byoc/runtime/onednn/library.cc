// oneDNN's answers to the rooms around it; see library.h.
#include "onednn/library.h"

#include <omp.h>

#include "base/error.h"
#include "onednn/builder/step_builder.h"
#include "onednn/engine.h"
#include "onednn/layout.h"
#include "onednn/packing/packed_form.h"
#include "onednn/process_state.h"

namespace mxplan {
namespace {

// Kernels count the bytes of an image and its padding in 32 bits; arguments of a concatenation have
// so many numbers.
constexpr StepLimits kLimits = {INT32_MAX, 1024};

class OneDnnBuilder final : public Builder {
 public:
  explicit OneDnnBuilder(Resolved* resolved) : Builder(resolved, kLimits), program_(resolved) {}

 private:
  Executable Make(const Step& step, bool lists_alternatives) override {
    return BuildExecutable(step, &program_, lists_alternatives);
  }

  DescribedProgram program_;
};

const bool registered = [] {
  RegisterLibrary(*new OneDnn());  // never destroyed: modules outlive main's statics
  return true;
}();

}  // namespace

ProcessState OneDnn::State() const { return CurrentState(); }

void OneDnn::SetThreads(int count) const { omp_set_num_threads(count); }

Stream* OneDnn::ThreadStream() const { return StreamOfThread(); }

PhysicalLayout OneDnn::LayoutOf(const Dims& dims, const std::string& dtype,
                                const std::string& tag) const {
  try {
    return ToPhysical(MakeDesc(dims, ParseDtype(dtype), tag));
  } catch (const dnnl::error& error) {
    ThrowUnsupported(error.what());
  }
}

std::unique_ptr<Builder> OneDnn::NewBuilder(Resolved* resolved) const {
  return Translated([&] { return std::make_unique<OneDnnBuilder>(resolved); });
}

void OneDnn::CheckForm(const ConstantData& constant) const {
  Translated([&] { CheckStoredForm(constant); });
}

void OneDnn::Unpack(const ConstantData& constant, char* plain) const {
  Translated([&] { UnpackStored(constant, plain); });
}

}  // namespace mxplan
