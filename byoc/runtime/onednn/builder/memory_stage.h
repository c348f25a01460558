// Stages that take their arguments as oneDNN's memory objects.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_MEMORY_STAGE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_MEMORY_STAGE_H_

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "library/stage.h"

namespace mxplan {

// An argument and the descriptor its bytes are seen through.
struct MemoryArgument {
  int id = 0;  // DNNL_ARG_*
  Argument::Source source = Argument::Source::kValue;
  int value = -1;
  dnnl::memory::desc desc;
  int64_t offset = 0;
  std::shared_ptr<const Form> form = {};
};

class MemoryStage : public Stage {
 public:
  explicit MemoryStage(const std::vector<MemoryArgument>& arguments);
  std::unique_ptr<StageCall> NewCall() const final;

  // `memories` are those of the arguments, in their order.  May throw dnnl::error.
  virtual void Execute(dnnl_stream_t stream,
                       const std::vector<dnnl_exec_arg_t>& memories) const = 0;

 protected:
  // The bytes of an argument of this call.
  template <typename T = float>
  static T* Data(const dnnl_exec_arg_t& argument) {
    void* data = nullptr;
    dnnl_memory_get_data_handle(argument.memory, &data);
    return static_cast<T*>(data);
  }

 private:
  struct Seen {
    int id;
    dnnl::memory::desc desc;
  };
  std::vector<Seen> seen_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_MEMORY_STAGE_H_
