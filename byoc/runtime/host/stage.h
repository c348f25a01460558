// A step of the host library as a stage: a kernel that is called with the addresses of its
// arguments.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STAGE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STAGE_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "library/stage.h"

namespace mxplan::host {

// Safe to call from many threads; what it throws is Error.
using Kernel = std::function<void(char* const* addresses)>;

class KernelStage final : public Stage {
 public:
  KernelStage(std::vector<Argument> arguments, Kernel kernel)
      : Stage(std::move(arguments)), kernel_(std::move(kernel)) {}
  std::unique_ptr<StageCall> NewCall() const override {
    return std::make_unique<Call>(kernel_, arguments().size());
  }

 private:
  class Call final : public StageCall {
   public:
    Call(const Kernel& kernel, size_t arguments) : kernel_(kernel), addresses_(arguments) {}
    void SetAddress(size_t argument, void* address) override {
      addresses_[argument] = static_cast<char*>(address);
    }
    void Run(Stream*) override { kernel_(addresses_.data()); }

   private:
    const Kernel& kernel_;
    std::vector<char*> addresses_;
  };

  Kernel kernel_;
};

// Kernels are done when they return, so there is nothing to wait for.
class DirectStream final : public Stream {
 public:
  void Wait() override {}
};

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STAGE_H_
