// The module that is exported beside a region; see ffi/weights_module.h.
#include "ffi/weights_module.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <optional>
#include <utility>

#include "ffi/errors.h"

namespace mxplan {

namespace ffi = tvm::ffi;

namespace {

constexpr const char* kKind = "mxplan.weights";  // no backend's name

class WeightsModule final : public ffi::ModuleObj {
 public:
  explicit WeightsModule(std::shared_ptr<ExportedWeights> weights) : weights_(std::move(weights)) {}

  const char* kind() const final { return kKind; }
  int GetPropertyMask() const final { return ffi::Module::kCompilationExportable; }
  ffi::Array<ffi::String> GetWriteFormats() const final { return {"o"}; }
  ffi::Optional<ffi::Function> GetFunction(const ffi::String&) final { return std::nullopt; }

  void WriteToFile(const ffi::String& path, const ffi::String&) const final {
    Guard([&] { weights_->Write(std::string(path)); });
  }

 private:
  std::shared_ptr<ExportedWeights> weights_;
};

}  // namespace

ffi::Module MakeWeightsModule(std::shared_ptr<ExportedWeights> weights) {
  return ffi::Module(ffi::make_object<WeightsModule>(std::move(weights)));
}

}  // namespace mxplan
