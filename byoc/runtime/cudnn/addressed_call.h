// A stage's call that keeps the addresses of its arguments.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_ADDRESSED_CALL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_ADDRESSED_CALL_H_

#include <cstddef>
#include <vector>

#include "library/stage.h"

namespace mxplan {

// Addresses of a stage's arguments in one context.
class AddressedCall : public StageCall {
 public:
  explicit AddressedCall(size_t arguments) : addresses_(arguments, nullptr) {}
  void SetAddress(size_t argument, void* address) override {
    changed_ = changed_ || addresses_[argument] != address;
    addresses_[argument] = address;
  }

 protected:
  std::vector<void*> addresses_;
  bool changed_ = true;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_ADDRESSED_CALL_H_
