// The constants of a region and their packed forms.
//
// A constant is packed once for each descriptor that some primitive asks for; all specializations
// of a region share the result.  Safe to use from many threads.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "buffer.h"
#include "constant.h"

namespace mxplan {

class Weights {
 public:
  explicit Weights(std::vector<ConstantData> constants) : constants_(std::move(constants)) {}

  // A view of a constant and the form some primitive wants it in.
  struct Request {
    int64_t constant = 0;
    int64_t offset = 0;  // bytes
    dnnl::memory::desc from, to;
  };

  const std::vector<ConstantData>& constants() const { return constants_; }
  // Makes what is missing.
  void Pack(const std::vector<Request>& requests);
  // Address of a packed form; Pack has made it.
  const char* Get(const Request& request) const;
  int64_t packed_bytes() const;

 private:
  struct Entry {
    Request request;
    const char* data;
  };
  const char* Find(const Request& request) const;
  const char* Source(const Request& request) const;
  bool UsableInPlace(const Request& request) const;

  std::vector<ConstantData> constants_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<Buffer> buffers_;
  int64_t packed_bytes_ = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_H_
