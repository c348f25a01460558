// A resolved program with oneDNN's descriptors of its values.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_DESCRIBED_PROGRAM_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_DESCRIBED_PROGRAM_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "program/resolved.h"

namespace mxplan {

class DescribedProgram {
 public:
  // `resolved` outlives the object.
  explicit DescribedProgram(Resolved* resolved);

  const Resolved& resolved() const { return *resolved_; }
  const Program& program() const { return *resolved_->program; }
  // Throws Unsupported with the value's error, if it has one.
  const ResolvedValue& Get(int value) const;
  // Likewise; "any" stays.
  const dnnl::memory::desc& Desc(int value) const;
  bool IsConstant(int value) const;
  // Decides the layout of a value in layout "any".
  void Decide(int value, const dnnl::memory::desc& desc);

 private:
  Resolved* resolved_;
  std::vector<dnnl::memory::desc> descs_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_DESCRIBED_PROGRAM_H_
