// The module that is exported beside a region; see ffi_weights_module.h.
#include "ffi_weights_module.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <optional>
#include <utility>

#include "ffi_errors.h"
#include "linked_weights.h"

namespace mxplan {

namespace ffi = tvm::ffi;

namespace {

constexpr const char* kKind = "mxplan.weights";  // no backend's name

class WeightsModule final : public ffi::ModuleObj {
 public:
  WeightsModule(std::string symbol, std::vector<ConstantData> constants)
      : symbol_(std::move(symbol)), constants_(std::move(constants)) {}

  const char* kind() const final { return kKind; }
  int GetPropertyMask() const final { return ffi::Module::kCompilationExportable; }
  ffi::Array<ffi::String> GetWriteFormats() const final { return {"o"}; }
  ffi::Optional<ffi::Function> GetFunction(const ffi::String&) final { return std::nullopt; }

  void WriteToFile(const ffi::String& path, const ffi::String&) const final {
    Guard([&] { WriteWeightsObject(std::string(path), symbol_, constants_); });
  }

 private:
  std::string symbol_;
  std::vector<ConstantData> constants_;
};

}  // namespace

ffi::Module MakeWeightsModule(std::string symbol, std::vector<ConstantData> constants) {
  return ffi::Module(ffi::make_object<WeightsModule>(std::move(symbol), std::move(constants)));
}

}  // namespace mxplan
