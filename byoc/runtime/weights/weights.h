// The constants of a region and their packed forms.
//
// Packed forms are shared by the whole process: equal bytes that two stages want in one form,
// in two specializations or two modules, are packed and held once.  Safe to use from many threads.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_WEIGHTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_WEIGHTS_H_

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/keyed_cache.h"
#include "library/library.h"
#include "weights/constant.h"

namespace mxplan {

// A constant as some stage wants it; immutable.
class PackedWeights {
 public:
  PackedWeights(std::shared_ptr<const char> data, int64_t bytes, bool mapped = false)
      : data_(std::move(data)), bytes_(bytes), mapped_(mapped) {}
  const char* data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }
  bool mapped() const { return mapped_; }  // pages of a file: they are no memory of the process

 private:
  std::shared_ptr<const char> data_;
  int64_t bytes_;
  bool mapped_;
};

class Weights {
 public:
  enum class Sharing : uint8_t {
    kProcess,  // packed forms are found in the process's cache, and kept there
    kNone,     // they are made for this object alone
  };

  // The program's constants, and among them packed forms that are stored beside.
  Weights(std::vector<ConstantData> constants, const Library& library,
          Sharing sharing = Sharing::kProcess);

  // A view of a constant and the form some stage wants it in.
  struct Request {
    int64_t constant = 0;
    int64_t offset = 0;  // bytes
    std::shared_ptr<const Form> form;
    bool operator==(const Request& other) const;
  };
  struct Packed {
    Request request;
    std::shared_ptr<const PackedWeights> weights;
  };

  const std::vector<ConstantData>& constants() const { return constants_; }
  // Whether the constant's own bytes can be used as they are stored.
  bool UsableInPlace(const Request& request) const;
  const char* Source(const Request& request) const;
  // The plain bytes of a constant; made once where it is stored in another form.
  const char* Plain(size_t constant);
  // The plain bytes of a constant where the library's regions are; copied there once.
  const char* Resident(size_t constant);
  // The packed forms, each once, of requests that need one.
  std::vector<Packed> Pack(const std::vector<Request>& requests);

 private:
  struct Known {
    int64_t constant, offset, bytes;
    Digest digest;
  };
  // The form that was stored for a request; null if none was.
  std::shared_ptr<const PackedWeights> Stored(const Request& request) const;
  // Digest of the view's plain bytes, taken once; they are in `view`.
  Digest DigestOf(const Request& request, const char* view, bool mapped);

  const Library& library_;
  Sharing sharing_;
  std::vector<ConstantData> constants_, forms_;
  std::mutex mutex_;
  std::vector<Known> digests_;
  std::map<size_t, std::shared_ptr<const char>> plain_;     // of constants stored in another form
  std::map<size_t, std::shared_ptr<const char>> resident_;  // in the memory of a device
};

// The cache of packed forms.
CacheStatistics PackedWeightsStatistics();
void SetPackedWeightsCapacity(CacheCapacity capacity);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_WEIGHTS_H_
