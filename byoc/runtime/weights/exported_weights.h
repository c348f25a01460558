// The constants of a region on their way into an exported library, beside the region's module.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_EXPORTED_WEIGHTS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_EXPORTED_WEIGHTS_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "region/region.h"

namespace mxplan {

// The constants that a region exports beside itself, put together when they are first asked for.
class ExportedWeights {
 public:
  explicit ExportedWeights(std::shared_ptr<Region> region) : region_(std::move(region)) {}

  // Another region with the same constants takes the place of the first.
  void SetRegion(std::shared_ptr<Region> region);
  // Whether weights leave as this machine's primitives want them, from now on; forgets what was
  // put together.
  void SetPacked(bool packed);
  // The region with the name of its weights in the place of them.
  std::string Save(const std::string& symbol, std::string_view program);
  // The weights as an object file.
  void Write(const std::string& path);

 private:
  struct Data {
    std::string symbol;  // where it stands in the library
    std::vector<ConstantData> constants;
  };
  const Data& Get();  // with mutex_ held

  std::shared_ptr<Region> region_;
  std::mutex mutex_;
  bool packed_ = false;
  std::unique_ptr<Data> data_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_EXPORTED_WEIGHTS_H_
