// oneDNN as a library of the runtime: convolutions, matrix products and all else on the CPU.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_LIBRARY_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_LIBRARY_H_

#include <memory>
#include <string>

#include "library/library.h"

namespace mxplan {

class OneDnn final : public Library {
 public:
  const char* name() const override { return "onednn"; }
  const char* title() const override { return "oneDNN"; }
  ProcessState State() const override;
  void SetThreads(int count) const override;
  Stream* ThreadStream() const override;
  PhysicalLayout LayoutOf(const Dims& dims, const std::string& dtype,
                          const std::string& tag) const override;
  std::unique_ptr<Builder> NewBuilder(Resolved* resolved) const override;
  void CheckForm(const ConstantData& constant) const override;
  void Unpack(const ConstantData& constant, char* plain) const override;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_LIBRARY_H_
