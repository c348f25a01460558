// The module that is exported beside a region; see ffi_weights_module.h.
#include "ffi_weights_module.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <optional>
#include <utility>

#include "container.h"
#include "ffi_errors.h"
#include "linked_weights.h"

namespace mxplan {

namespace ffi = tvm::ffi;

void ExportedWeights::SetRegion(std::shared_ptr<Region> region) {
  std::lock_guard<std::mutex> lock(mutex_);
  region_ = std::move(region);
  data_ = nullptr;
}

void ExportedWeights::SetPacked(bool packed) {
  std::lock_guard<std::mutex> lock(mutex_);
  packed_ = packed;
  data_ = nullptr;
}

std::string ExportedWeights::Save(const std::string& symbol, std::string_view program) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Data& data = Get();
  return mxplan::Save(symbol, program, data.constants, data.symbol);
}

void ExportedWeights::Write(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Data& data = Get();
  WriteWeightsObject(path, data.symbol, data.constants);
}

const ExportedWeights::Data& ExportedWeights::Get() {
  if (!data_) {
    auto constants = packed_ ? region_->PackedConstants() : region_->PlainConstants();
    std::string symbol = WeightsSymbol(name_, constants);
    data_ = std::make_unique<Data>(Data{std::move(symbol), std::move(constants)});
  }
  return *data_;
}

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
