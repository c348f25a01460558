// Memory objects for one context's calls; see memory_stage.h.
#include "onednn/builder/memory_stage.h"

#include <utility>

#include "base/error.h"
#include "onednn/engine.h"

namespace mxplan {
namespace {

class MemoryStageCall final : public StageCall {
 public:
  MemoryStageCall(const MemoryStage& stage, std::vector<dnnl::memory> memories,
                  std::vector<dnnl_exec_arg_t> arguments)
      : stage_(stage), memories_(std::move(memories)), arguments_(std::move(arguments)) {}

  void SetAddress(size_t argument, void* address) override {
    dnnl_memory_set_data_handle(arguments_[argument].memory, address);
  }

  void Run(Stream* stream) override {
    try {
      stage_.Execute(static_cast<OneDnnStream*>(stream)->native().get(), arguments_);
    } catch (const dnnl::error& error) {
      ThrowInternal("oneDNN ", error.what(), " (status ", static_cast<int>(error.status), ")");
    }
  }

 private:
  const MemoryStage& stage_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

std::vector<Argument> WithoutDescriptors(const std::vector<MemoryArgument>& arguments) {
  std::vector<Argument> result;
  for (const MemoryArgument& argument : arguments) {
    result.push_back({argument.source, argument.value, argument.offset, argument.form});
  }
  return result;
}

}  // namespace

MemoryStage::MemoryStage(const std::vector<MemoryArgument>& arguments)
    : Stage(WithoutDescriptors(arguments)) {
  for (const MemoryArgument& argument : arguments) seen_.push_back({argument.id, argument.desc});
}

std::unique_ptr<StageCall> MemoryStage::NewCall() const {
  return Translated([&] {
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
    for (const Seen& seen : seen_) {
      memories.emplace_back(seen.desc, CpuEngine(), nullptr);
      arguments.push_back({seen.id, memories.back().get()});
    }
    return std::make_unique<MemoryStageCall>(*this, std::move(memories), std::move(arguments));
  });
}

}  // namespace mxplan
