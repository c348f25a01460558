// Put together on demand; see exported_weights.h.
#include "weights/exported_weights.h"

#include "weights/container.h"
#include "weights/linked_weights.h"

namespace mxplan {

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
    std::string symbol = WeightsSymbol(constants);
    data_ = std::make_unique<Data>(Data{std::move(symbol), std::move(constants)});
  }
  return *data_;
}

}  // namespace mxplan
